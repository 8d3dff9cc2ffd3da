import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join, relative, sep } from 'node:path';
import type { Plugin } from 'vite';

/**
 * What a build is made from. page_test.go names the same files and folders: it
 * recomputes the digest and fails when dist is older than its sources.
 */
const inputs = [
  'build',
  'index.html',
  'package-lock.json',
  'package.json',
  'public',
  'src',
  'tsconfig.json',
  'vite.config.ts',
];

function filesUnder(path: string): string[] {
  if (!statSync(path).isDirectory()) return [path];
  return readdirSync(path).flatMap((name) => filesUnder(join(path, name)));
}

const sha256 = (data: Uint8Array | string) => createHash('sha256').update(data).digest('hex');

/** One "digest  path" line per file, in byte order of the paths, as sha256sum prints them. */
function manifest(root: string, paths: string[]): string {
  return paths
    .map((path) => ({ name: relative(root, path).split(sep).join('/'), path }))
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .map(({ name, path }) => `${sha256(readFileSync(path))}  ${name}\n`)
    .join('');
}

/** Writes build.json beside the built files: a digest of the sources, and one of what they became. */
export function stamp(root: string): Plugin {
  return {
    name: 'stamp-build',
    apply: 'build',
    writeBundle({ dir }) {
      const out = dir ?? join(root, 'dist');
      const sources = inputs
        .flatMap((input) => filesUnder(join(root, input)))
        .filter((path) => !/\.test\.tsx?$/.test(path));
      const built = filesUnder(out).filter((path) => path !== join(out, 'build.json'));
      const record = { sources: sha256(manifest(root, sources)), dist: sha256(manifest(out, built)) };
      writeFileSync(join(out, 'build.json'), JSON.stringify(record, null, 2) + '\n');
    },
  };
}
