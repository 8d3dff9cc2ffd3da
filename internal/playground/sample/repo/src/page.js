// The price list for a browser: npm start, then http://127.0.0.1:3000/
import { createServer } from 'node:http';
import { boats } from './boats.js';
import { quote } from './quote.js';

const style = `body { font: 20px sans-serif; margin: 48px; color: #16324f }
table { border-collapse: collapse }
th, td { padding: 12px 28px; border-bottom: 1px solid #cfd8e3; text-align: right }`;

// row is what a hire of a number of days costs, with each boat.
function row(days) {
  const quotes = Object.keys(boats).map((boat) => quote({ boat, from: '2026-07-01', to: `2026-07-${String(days).padStart(2, '0')}` }));
  const cells = [days, `${quotes[0].percent} %`, ...quotes.map((q) => `€${(q.total / 100).toFixed(2)}`)];
  return `<tr>${cells.map((cell) => `<td>${cell}</td>`).join('')}</tr>`;
}

// page is the price list as HTML.
function page() {
  const heads = ['Days', 'Discount', ...Object.values(boats).map((boat) => boat.name)];
  return `<!doctype html><html lang="en"><meta charset="utf-8"><title>Boathouse</title><style>${style}</style>
<h1>Boathouse</h1><table><tr>${heads.map((head) => `<th>${head}</th>`).join('')}</tr>${[1, 2, 3, 5, 7, 14].map(row).join('')}</table></html>`;
}

createServer((_, answer) => answer.setHeader('Content-Type', 'text/html').end(page())).listen(3000, '127.0.0.1');
