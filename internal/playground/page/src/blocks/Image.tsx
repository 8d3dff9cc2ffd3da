import { useState } from 'react';
import type { Block, TextObject } from '../slack/types';
import { Link } from '../text/Mrkdwn';
import { localSrc } from '../text/links';
import { PlainText } from './TextObject';

/** An image block, or an image element. */
type Source = Readonly<Record<string, unknown>>;

const addressOf = (source: Source) =>
  String(source.image_url ?? (source.slack_file as { url?: string } | undefined)?.url ?? '');

/** An image of Block Kit. One that lies elsewhere is not loaded: nothing leaves this machine. */
export function BlockImage({ source, size }: { source: Source; size: 'icon' | 'thumb' | 'full' }) {
  const address = addressOf(source);
  const alt = String(source.alt_text ?? '');
  const [broken, setBroken] = useState<string>();
  const src = localSrc(address, location);
  if (src && src !== broken)
    return (
      <img className={`image-${size}`} src={src} alt={alt} title={alt || undefined} onError={() => setBroken(src)} />
    );
  if (size !== 'full')
    return <span className={`image-${size} image-away`} role="img" aria-label={alt} title={`${alt} (not loaded)`} />;
  return (
    <div className="image-full image-away">
      <span>{alt || 'An image'}</span>
      <small>
        {src ? (
          'could not be loaded.'
        ) : (
          <>is not loaded here: nothing leaves this machine. {address !== '' && <Link href={address}>Open it</Link>}</>
        )}
      </small>
    </div>
  );
}

export function ImageBlock({ block }: { block: Block }) {
  return (
    <figure className="block-image">
      {block.title !== undefined && block.title !== null && (
        <figcaption>
          <PlainText text={block.title as TextObject} />
        </figcaption>
      )}
      <BlockImage source={block} size="full" />
    </figure>
  );
}
