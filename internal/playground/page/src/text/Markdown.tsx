import { memo, type ReactNode } from 'react';
import ReactMarkdown, { type Components } from 'react-markdown';
import remarkGfm from 'remark-gfm';
import { remarkSlack } from './markdownSlack';
import { Inlines, Link, Pre } from './Mrkdwn';
import type { Inline } from './mrkdwn';

function textOf(node: ReactNode): string {
  if (typeof node === 'string') return node;
  if (Array.isArray(node)) return node.map(textOf).join('');
  return '';
}

/** Slack's reading of CommonMark: HTML is text, an image is a link to it. */
const components: Components & Record<'slack-inline', (props: { node?: unknown }) => ReactNode> = {
  a: ({ href, children }) => <Link href={href ?? ''}>{children}</Link>,
  img: ({ src, alt }) => <Link href={typeof src === 'string' ? src : ''}>{alt || 'image'}</Link>,
  pre: ({ children }) => {
    const code = (children as { props?: { children?: ReactNode; className?: string } } | undefined)?.props;
    const language = /language-(\S+)/.exec(code?.className ?? '')?.[1];
    return <Pre text={textOf(code?.children).replace(/\n$/, '')} language={language} />;
  },
  code: ({ children }) => <code className="code">{children}</code>,
  blockquote: ({ children }) => <blockquote className="quote">{children}</blockquote>,
  table: ({ children }) => (
    <div className="table-scroll" tabIndex={0} role="region" aria-label="Table">
      <table className="table">{children}</table>
    </div>
  ),
  input: ({ checked }) => (
    <input
      type="checkbox"
      checked={checked ?? false}
      readOnly
      tabIndex={-1}
      aria-label={checked ? 'done' : 'not done'}
    />
  ),
  'slack-inline': (props) => {
    // hast hands the attribute on under its own name; react-markdown adds the hast node as "node".
    const hast = props.node as { properties?: { node?: string } } | undefined;
    const json = hast?.properties?.node;
    return json ? <Inlines nodes={[JSON.parse(json) as Inline]} /> : null;
  },
};

/** The text of a markdown block. */
export const Markdown = memo(function Markdown(props: { text: string }) {
  return (
    <div className="markdown">
      <ReactMarkdown remarkPlugins={[remarkGfm, remarkSlack]} components={components}>
        {props.text}
      </ReactMarkdown>
    </div>
  );
});
