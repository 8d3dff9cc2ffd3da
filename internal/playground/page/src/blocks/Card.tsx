import { useState } from 'react';
import { ElementView } from '../elements/ElementView';
import type { Block, Element, TextObject } from '../slack/types';
import { Chevron } from '../ui/icons';
import { Blocks } from './Blocks';
import { BlockImage } from './Image';
import { RichText } from './RichText';
import { PlainText, RichLine } from './TextObject';

export function CardBlock({ block }: { block: Block }) {
  const text = (field: string) => block[field] as TextObject | undefined;
  const raw = block.actions as Element[] | { elements?: Element[] } | undefined;
  const actions = Array.isArray(raw) ? raw : (raw?.elements ?? []);
  return (
    <div className="card">
      {block.hero_image !== undefined && <BlockImage source={block.hero_image as Element} size="full" />}
      <div className="card-head">
        {block.icon !== undefined && <BlockImage source={block.icon as Element} size="icon" />}
        <div>
          {text('title') && (
            <div className="card-title">
              <RichLine text={text('title') as TextObject} />
            </div>
          )}
          {text('subtitle') && (
            <div className="card-subtitle">
              <RichLine text={text('subtitle') as TextObject} />
            </div>
          )}
        </div>
      </div>
      {text('body') && <RichLine text={text('body') as TextObject} />}
      {text('subtext') && (
        <div className="card-subtitle">
          <RichLine text={text('subtext') as TextObject} />
        </div>
      )}
      {actions.length > 0 && (
        <div className="block-actions">
          {actions.map((element, i) => (
            <ElementView key={element.action_id ?? i} element={element} block={block.block_id ?? ''} dispatch />
          ))}
        </div>
      )}
    </div>
  );
}

export function Carousel({ block }: { block: Block }) {
  const cards = (block.elements as Block[] | undefined) ?? [];
  return (
    <div className="carousel" tabIndex={0} role="region" aria-label="Cards">
      {cards.map((card, i) => (
        <CardBlock key={card.block_id ?? i} block={card} />
      ))}
    </div>
  );
}

/** The container block: blocks in a frame that may fold away. */
export function Container({ block }: { block: Block }) {
  const [open, setOpen] = useState(block.default_collapsed !== true);
  const rich = block.rich_text_title as Block | undefined;
  const title = (
    <>
      {block.icon !== undefined && <BlockImage source={block.icon as Element} size="icon" />}
      <span className="container-title">
        {rich ? <RichText elements={rich.elements} /> : <PlainText text={block.title as TextObject} />}
      </span>
      {block.subtitle !== undefined && (
        <span className="container-subtitle">
          <PlainText text={block.subtitle as TextObject} />
        </span>
      )}
    </>
  );
  return (
    <div className={`container ${String(block.width ?? 'standard')}`}>
      {block.is_collapsible === true ? (
        <button type="button" className="container-head" aria-expanded={open} onClick={() => setOpen(!open)}>
          {title}
          <Chevron size={14} />
        </button>
      ) : (
        <div className="container-head">{title}</div>
      )}
      {(open || block.is_collapsible !== true) && <Blocks blocks={(block.child_blocks as Block[] | undefined) ?? []} />}
    </div>
  );
}
