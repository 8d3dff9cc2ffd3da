# syntax=docker/dockerfile:1

# The bot, the pinned Claude Code CLI and what both need to work on code. Not
# distroless: the agent works in a shell. Build on this image (FROM deckhand)
# to add your projects' own tools: compilers, package managers, linters.

FROM golang:1.26-bookworm AS bot
WORKDIR /src
COPY go.mod go.sum ./
RUN --mount=type=cache,target=/go/pkg/mod go mod download
COPY cmd cmd
COPY internal internal
COPY migrations migrations
ARG VERSION=dev
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags "-s -w -X main.version=${VERSION}" -o /out/bot ./cmd/bot

# The CLI is a native program inside an npm package; Node.js stays behind.
FROM node:22-bookworm-slim AS claude
WORKDIR /claude
COPY deploy/claude/package.json deploy/claude/package-lock.json ./
RUN npm ci --ignore-scripts --no-audit --no-fund
RUN case "$(uname -m)" in x86_64) arch=x64 ;; aarch64) arch=arm64 ;; *) exit 1 ;; esac \
    && install -D -m 0755 "node_modules/@anthropic-ai/claude-code-linux-$arch/claude" /out/claude \
    && install -D -m 0644 node_modules/@anthropic-ai/claude-code/LICENSE.md /out/claude.LICENSE.md \
    && /out/claude --version

FROM debian:bookworm-slim
RUN apt-get update \
    && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
        bubblewrap ca-certificates curl git jq less openssh-client procps ripgrep \
    && rm -rf /var/lib/apt/lists/* \
    && groupadd --gid 10001 deckhand \
    && useradd --uid 10001 --gid 10001 --create-home --shell /bin/bash deckhand \
    && install -d -o 10001 -g 10001 -m 0750 /var/lib/deckhand /var/lib/deckhand/workspaces \
    && install -d -m 0755 /etc/deckhand
COPY --from=claude /out/claude /out/claude.LICENSE.md /opt/claude/
COPY --from=bot /out/bot /usr/local/bin/bot
COPY LICENSE /usr/share/doc/deckhand/LICENSE

ENV CLAUDE_COMMAND=/opt/claude/claude \
    DECKHAND_CONFIG=/etc/deckhand/deckhand.yaml \
    DECKHAND_DATA_DIR=/var/lib/deckhand \
    DECKHAND_LISTEN=:8080 \
    DISABLE_AUTOUPDATER=1 \
    LANG=C.UTF-8
USER 10001:10001
WORKDIR /var/lib/deckhand
VOLUME ["/var/lib/deckhand", "/var/lib/deckhand/workspaces"]
EXPOSE 8080

HEALTHCHECK --interval=15s --timeout=5s --start-period=30s --retries=3 \
    CMD ["bot", "doctor", "--health"]
ENTRYPOINT ["bot"]
CMD ["run"]

ARG VERSION=dev
LABEL org.opencontainers.image.title="Deckhand" \
      org.opencontainers.image.description="Claude Code in a team's Slack: threads are sessions, buttons are approvals, every cent is accounted for" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}"
