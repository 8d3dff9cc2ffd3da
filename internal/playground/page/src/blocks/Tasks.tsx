import { useState, type ReactNode } from 'react';
import type { Block } from '../slack/types';
import { withEmoji } from '../text/emoji';
import { Link } from '../text/Mrkdwn';
import { Alert, Check, Chevron } from '../ui/icons';
import { RichText } from './RichText';

interface Source {
  url?: string;
  text?: string;
}

const words: Record<string, string> = {
  pending: 'to do',
  in_progress: 'in progress',
  complete: 'done',
  error: 'failed',
};

function Status({ status }: { status: string }): ReactNode {
  return (
    <span className={`task-status ${status}`} role="img" aria-label={words[status] ?? status}>
      {status === 'complete' ? <Check size={13} /> : status === 'error' ? <Alert size={13} /> : null}
    </span>
  );
}

/** The task_card block: one step of an agent's work, with details behind a click. */
export function TaskCard({ task }: { task: Block }) {
  const status = String(task.status ?? 'pending');
  const details = richElements(task.details);
  const output = richElements(task.output);
  const sources = (task.sources as Source[] | undefined) ?? [];
  const more = details || output || sources.length > 0;
  const [open, setOpen] = useState(false);
  const title = <span className="task-title">{withEmoji(String(task.title ?? ''))}</span>;
  return (
    <div className="task" data-task-id={task.task_id} data-status={status}>
      {more ? (
        <button type="button" className="task-head" aria-expanded={open} onClick={() => setOpen(!open)}>
          <Status status={status} />
          {title}
          <Chevron size={14} />
        </button>
      ) : (
        <div className="task-head">
          <Status status={status} />
          {title}
        </div>
      )}
      {open && (
        <div className="task-body">
          {details && <RichText elements={details} />}
          {output && (
            <div className="task-output">
              <RichText elements={output} />
            </div>
          )}
          {sources.length > 0 && (
            <div className="task-sources">
              {sources.map((source, i) => (
                <Link key={i} href={source.url ?? ''}>
                  {source.text ?? source.url}
                </Link>
              ))}
            </div>
          )}
        </div>
      )}
    </div>
  );
}

/** Details come as a rich_text block, or from a stream as plain text. */
function richElements(value: unknown): unknown[] | undefined {
  if (typeof value === 'string')
    return value === '' ? undefined : [{ type: 'rich_text_section', elements: [{ type: 'text', text: value }] }];
  const elements = (value as { elements?: unknown[] } | undefined)?.elements;
  return elements && elements.length > 0 ? elements : undefined;
}

/** The plan block: a title over a list of tasks. */
export function Plan({ block }: { block: Block }) {
  const tasks = (block.tasks as Block[] | undefined) ?? [];
  const done = tasks.filter((task) => task.status === 'complete').length;
  const [open, setOpen] = useState(true);
  return (
    <div className="plan">
      <button type="button" className="plan-head" aria-expanded={open} onClick={() => setOpen(!open)}>
        <span className="plan-title">{withEmoji(String(block.title ?? 'Plan'))}</span>
        {tasks.length > 0 && (
          <span className="plan-count">
            {done} of {tasks.length}
          </span>
        )}
        <Chevron size={14} />
      </button>
      {open && (
        <div className="plan-tasks">
          {tasks.map((task, i) => (
            <TaskCard key={String(task.task_id ?? i)} task={task} />
          ))}
        </div>
      )}
    </div>
  );
}
