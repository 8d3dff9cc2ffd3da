import { useEffect, useState } from 'react';
import type { SlackFile } from '../slack/types';
import { fileSize } from '../text/format';
import { localSrc } from '../text/links';
import { Pre } from '../text/Mrkdwn';
import { Doc, Download } from '../ui/icons';

const textTypes = /^text\/|json|xml|yaml|javascript|x-sh|x-diff|toml/;
const textNames =
  /\.(txt|md|diff|patch|log|go|ts|tsx|js|json|ya?ml|toml|sql|sh|py|rb|rs|c|h|cpp|java|css|html|csv|ndjson|jsonl)$/i;

/** More of a text than this is not fetched for its preview. */
const previewBytes = 40_000;

/** The files of a message: images as they are, texts as a snippet, the rest as a card. */
export function Files({ files }: { files: SlackFile[] }) {
  return (
    <div className="files">
      {files.map((file) => (
        <FileView key={file.id} file={file} />
      ))}
    </div>
  );
}

function FileView({ file }: { file: SlackFile }) {
  const src = localSrc(file.url_private, location);
  const name = file.title || file.name;
  if (src && /^image\/(png|jpe?g|gif|webp|svg\+xml|avif)$/.test(file.mimetype ?? '')) {
    return (
      <figure className="file-image">
        <figcaption>{name}</figcaption>
        <a href={src} target="_blank" rel="noopener noreferrer">
          <img src={src} alt={name} />
        </a>
      </figure>
    );
  }
  const text = src !== undefined && (textTypes.test(file.mimetype ?? '') || textNames.test(file.name));
  return (
    <div className="file">
      <div className="file-head">
        <Doc />
        <span className="file-name">{name}</span>
        <small>{file.size !== undefined && fileSize(file.size)}</small>
        {src && (
          <a className="icon-button" href={src} download={file.name} aria-label={`Download ${name}`} title="Download">
            <Download size={16} />
          </a>
        )}
      </div>
      {text && src && <Snippet src={src} name={file.name} />}
    </div>
  );
}

const foldedLines = 8;

function Snippet({ src, name }: { src: string; name: string }) {
  const [text, setText] = useState<string>();
  const [open, setOpen] = useState(false);
  useEffect(() => {
    const abort = new AbortController();
    fetch(src, { signal: abort.signal, headers: { Range: `bytes=0-${previewBytes - 1}` } })
      .then(async (response) => (response.ok ? response.text() : undefined))
      .then(setText)
      .catch(() => undefined);
    return () => abort.abort();
  }, [src]);
  if (text === undefined) return null;
  const lines = text.slice(0, previewBytes).split('\n');
  const long = lines.length > foldedLines + 2;
  return (
    <div className="snippet">
      <Pre
        text={(open || !long ? lines : lines.slice(0, foldedLines)).join('\n')}
        language={/\.(diff|patch)$/.test(name) ? 'diff' : undefined}
      />
      {long && (
        <button type="button" className="text-button" aria-expanded={open} onClick={() => setOpen(!open)}>
          {open ? 'Show less' : `Show all ${lines.length} lines`}
        </button>
      )}
    </div>
  );
}
