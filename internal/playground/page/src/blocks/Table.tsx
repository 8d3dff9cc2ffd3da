import { useState, type ReactNode } from 'react';
import { ElementView } from '../elements/ElementView';
import type { Block, Element } from '../slack/types';
import { RichText } from './RichText';

interface Cell {
  type: string;
  text?: string;
  value?: number;
  elements?: unknown;
  element?: Element;
}

interface Column {
  align?: 'left' | 'center' | 'right';
  is_wrapped?: boolean;
}

/** The table and data_table blocks. The first row is the header. */
export function Table({ block }: { block: Block }) {
  const rows = (block.rows as (Cell | null)[][] | undefined) ?? [];
  const columns = (block.column_settings as (Column | null)[] | undefined) ?? [];
  const [head = [], ...body] = rows;
  const size = Number(block.page_size) || body.length;
  const pages = Math.max(1, Math.ceil(body.length / size));
  const [page, setPage] = useState(0);
  const shown = Math.min(page, pages - 1);
  const rowHeader = block.type === 'data_table' ? Number(block.row_header_column_index ?? -1) : -1;
  const caption = typeof block.caption === 'string' ? block.caption : undefined;

  const cellProps = (i: number, cell: Cell | null) => ({
    style: { textAlign: columns[i]?.align ?? (cell?.type === 'raw_number' ? ('right' as const) : undefined) },
    className: columns[i]?.is_wrapped ? 'wrapped' : undefined,
  });
  return (
    <div className="block-table">
      <div className="table-scroll" tabIndex={0} role="region" aria-label={caption ?? 'Table'}>
        <table className="table">
          {caption && <caption>{caption}</caption>}
          <thead>
            <tr>
              {head.map((cell, i) => (
                <th key={i} scope="col" {...cellProps(i, cell)}>
                  <CellView cell={cell} block={block} />
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {body.slice(shown * size, (shown + 1) * size).map((row, r) => (
              <tr key={r}>
                {row.map((cell, i) => {
                  const content: ReactNode = <CellView cell={cell} block={block} />;
                  return i === rowHeader ? (
                    <th key={i} scope="row" {...cellProps(i, cell)}>
                      {content}
                    </th>
                  ) : (
                    <td key={i} {...cellProps(i, cell)}>
                      {content}
                    </td>
                  );
                })}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {pages > 1 && (
        <div className="table-pages">
          <button type="button" className="button small" disabled={shown === 0} onClick={() => setPage(shown - 1)}>
            Previous
          </button>
          <span>
            Page {shown + 1} of {pages}
          </span>
          <button
            type="button"
            className="button small"
            disabled={shown === pages - 1}
            onClick={() => setPage(shown + 1)}
          >
            Next
          </button>
        </div>
      )}
    </div>
  );
}

function CellView({ cell, block }: { cell: Cell | null; block: Block }) {
  switch (cell?.type) {
    case 'raw_text':
      return <>{cell.text}</>;
    case 'raw_number':
      return <>{cell.text ?? cell.value}</>;
    case 'rich_text':
      return <RichText elements={cell.elements} />;
    case 'action_cell':
      return cell.element ? <ElementView element={cell.element} block={block.block_id ?? ''} dispatch /> : null;
    default:
      return null;
  }
}
