import type { TextObject } from '../slack/types';
import { withEmoji } from '../text/emoji';
import { Mrkdwn } from '../text/Mrkdwn';

/** A plain_text object on one line: shortcodes become emoji unless it says otherwise. */
export function PlainText(props: { text?: TextObject | null; fallback?: string }) {
  const { text } = props;
  if (!text?.text) return <>{props.fallback}</>;
  return <>{text.emoji === false ? text.text : withEmoji(text.text)}</>;
}

/** A text object of either kind, with its line breaks. */
export function RichLine({ text }: { text: TextObject }) {
  if (text.type === 'mrkdwn') return <Mrkdwn text={text.text} />;
  return (
    <div className="para plain">
      <PlainText text={text} />
    </div>
  );
}
