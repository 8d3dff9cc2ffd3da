import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import react from '@vitejs/plugin-react';
import { defineConfig } from 'vite';
import { stamp } from './build/stamp.ts';

const root = dirname(fileURLToPath(import.meta.url));

// `npm run dev` serves the sources and passes the API on to a running playground.
const playground = process.env.PLAYGROUND_URL ?? 'http://127.0.0.1:8065';

export default defineConfig({
  root,
  plugins: [react(), stamp(root)],
  build: {
    sourcemap: false,
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    target: 'es2022',
    license: { fileName: 'licenses.md' },
    // One file: it comes from this machine, so that splitting it would gain nothing.
    chunkSizeWarningLimit: 700,
  },
  server: {
    host: '127.0.0.1',
    proxy: { '/_control': playground, '/files-pri': playground },
  },
});
