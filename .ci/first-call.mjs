// `make demo` as a script sees it: its ready line, a mention, one approved tool
// call, and a clean end. Node.js alone, since that is what a bare machine has.
import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

const patience = 120 * 1000;
const data = mkdtempSync(join(tmpdir(), "first-call-"));
const started = Date.now();
const seconds = () => `${((Date.now() - started) / 1000).toFixed(1)} s`;

const make = spawn("make", ["--no-print-directory", "demo", `ARGS=--json --pace 0 --listen 127.0.0.1:0 --data ${data}`], {
  stdio: ["ignore", "pipe", "inherit"],
});
const ended = new Promise((resolve) => make.on("close", (code, signal) => resolve(signal ?? code)));

async function eventually(what, look) {
  for (const until = Date.now() + patience; Date.now() < until; await new Promise((r) => setTimeout(r, 100))) {
    const found = await look();
    if (found) return found;
  }
  throw new Error(`waited in vain for ${what}`);
}

async function story() {
  const line = await Promise.race([
    new Promise((resolve) => createInterface(make.stdout).once("line", resolve)),
    ended.then((how) => {
      throw new Error(`make demo ended with ${how} before it was ready`);
    }),
  ]);
  const demo = JSON.parse(line);
  console.log(`first call: ready after ${seconds()}: ${demo.url}`);

  const control = async (path, body) => {
    const answer = await fetch(`${demo.url}/_control/${path}`, {
      method: body ? "POST" : "GET",
      headers: { "Content-Type": "application/json" },
      body: body && JSON.stringify(body),
    });
    if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
    return answer.json();
  };
  // #careful asks about each command; #engineering runs what the sandbox holds.
  const channel = "C0CAREFUL";
  // In the thread's own folder, below the demo's data.
  const ran = () => spawnSync("find", [data, "-name", "approved"]).stdout.length > 0;
  const { ts } = await control("messages", {
    user: "U0LINUS",
    channel,
    text: '@deckhand tool: Bash {"command":"touch approved"}\nsay: It is there.',
  });
  const thread = async () => {
    const { messages } = await control(`messages?channel=${channel}&thread_ts=${ts}`);
    if (messages.some((m) => m.reactions?.some((r) => r.name === "warning"))) {
      throw new Error(`the turn failed: ${messages.map((m) => m.text).join("\n")}`);
    }
    return messages;
  };
  const card = await eventually("the approval's card", async () =>
    (await thread()).find((m) => JSON.stringify(m.blocks ?? []).includes('"action_id":"approve"')),
  );
  if (ran()) throw new Error("it ran before it was approved");
  await control("actions", { user: "U0GRACE", channel, message_ts: card.ts, action_id: "approve" });
  await eventually("the prompt to be done", async () =>
    (await thread()).find((m) => m.ts === ts)?.reactions?.some((r) => r.name === "white_check_mark"),
  );
  if (!ran()) throw new Error("it was approved and did not run");
  console.log(`first call: approved, ran and answered after ${seconds()}`);
  return demo;
}

let failed = false;
try {
  const demo = await story();
  make.kill("SIGTERM");
  await ended;
  await eventually("the demo's end", () => Object.values(demo.pids).every((pid) => !existsSync(`/proc/${pid}`)));
  console.log(`first call: stopped after ${seconds()}`);
} catch (error) {
  failed = true;
  console.error(`first call: ${error.message}`);
  if (existsSync(join(data, "bot.log"))) console.error(readFileSync(join(data, "bot.log"), "utf8"));
  make.kill("SIGTERM");
  await ended;
}
rmSync(data, { recursive: true, force: true });
process.exit(failed ? 1 : 0);
