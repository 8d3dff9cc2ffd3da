import { Blocks } from '../blocks/Blocks';
import type { Attachment } from '../slack/types';
import { Link, Mrkdwn } from '../text/Mrkdwn';

const named: Record<string, string> = { good: 'var(--good)', warning: 'var(--warning)', danger: 'var(--danger)' };

function barColour(colour: string | undefined): string | undefined {
  if (!colour) return undefined;
  if (named[colour]) return named[colour];
  const hex = colour.replace(/^#/, '');
  return /^[0-9a-f]{3,8}$/i.test(hex) ? `#${hex}` : undefined;
}

/** Legacy attachments: a bar in a colour beside text or blocks. */
export function Attachments({ attachments }: { attachments: Attachment[] }) {
  return (
    <>
      {attachments.map((attachment, i) => (
        <div key={i} className="attachment">
          {attachment.pretext && <Mrkdwn text={attachment.pretext} />}
          <div className="attachment-body" style={{ borderLeftColor: barColour(attachment.color) }}>
            {attachment.author_name && <div className="attachment-author">{attachment.author_name}</div>}
            {attachment.title && (
              <div className="attachment-title">
                {attachment.title_link ? (
                  <Link href={attachment.title_link}>{attachment.title}</Link>
                ) : (
                  attachment.title
                )}
              </div>
            )}
            {attachment.blocks && attachment.blocks.length > 0 ? (
              <Blocks blocks={attachment.blocks} />
            ) : (
              <Mrkdwn text={attachment.text ?? attachment.fallback ?? ''} />
            )}
            {attachment.fields && (
              <div className="fields">
                {attachment.fields.map((field, f) => (
                  <div key={f} className="field">
                    <strong>{field.title}</strong>
                    <Mrkdwn text={field.value ?? ''} />
                  </div>
                ))}
              </div>
            )}
            {attachment.footer && <div className="attachment-footer">{attachment.footer}</div>}
          </div>
        </div>
      ))}
    </>
  );
}
