import { memo } from 'react';
import type { Block, Element, TextObject } from '../slack/types';
import { ElementView } from '../elements/ElementView';
import { Markdown } from '../text/Markdown';
import { Alert, Info } from '../ui/icons';
import { CardBlock, Carousel, Container } from './Card';
import { Chart } from './Chart';
import { BlockImage, ImageBlock } from './Image';
import { InputBlock } from './Input';
import { RichText } from './RichText';
import { Table } from './Table';
import { Plan, TaskCard } from './Tasks';
import { PlainText, RichLine } from './TextObject';

/**
 * A list of blocks. They are keyed by place and type, not by block_id: apps
 * change ids when a card changes, and the card must not flicker for that.
 */
export const Blocks = memo(function Blocks(props: { blocks: readonly Block[]; errors?: Record<string, string> }) {
  return (
    <div className="blocks">
      {props.blocks.map((block, i) => (
        <BlockView key={`${i}/${block.type}`} block={block} error={props.errors?.[block.block_id ?? '']} />
      ))}
    </div>
  );
});

function BlockView({ block, error }: { block: Block; error?: string }) {
  switch (block.type) {
    case 'section':
      return <Section block={block} />;
    case 'header':
      return (
        <h3 className={`block-header level-${Number(block.level) || 1}`}>
          <PlainText text={block.text as TextObject} />
        </h3>
      );
    case 'divider':
      return <hr className="block-divider" />;
    case 'context':
      return <Context block={block} />;
    case 'actions':
    case 'context_actions':
      return <Actions block={block} />;
    case 'image':
      return <ImageBlock block={block} />;
    case 'input':
      return <InputBlock block={block} error={error} />;
    case 'markdown':
      return <Markdown text={String(block.text ?? '')} />;
    case 'rich_text':
      return <RichText elements={block.elements} />;
    case 'table':
    case 'data_table':
      return <Table block={block} />;
    case 'task_card':
      return <TaskCard task={block} />;
    case 'plan':
      return <Plan block={block} />;
    case 'data_visualization':
      return <Chart block={block} />;
    case 'file':
      return (
        <div className="block-note">
          <Info size={16} /> A remote file: {String(block.external_id ?? '')}
        </div>
      );
    case 'alert':
      return <AlertBlock block={block} />;
    case 'card':
      return <CardBlock block={block} />;
    case 'carousel':
      return <Carousel block={block} />;
    case 'container':
      return <Container block={block} />;
    default:
      return (
        <div className="block-note unknown">
          <Info size={16} /> The playground does not draw “{block.type}” blocks.
        </div>
      );
  }
}

function Section({ block }: { block: Block }) {
  const accessory = block.accessory as Element | undefined;
  const fields = (block.fields as TextObject[] | undefined) ?? [];
  return (
    <div className={`block-section ${accessory?.type === 'image' ? 'with-image' : ''}`}>
      <div className="section-main">
        {block.text !== undefined && block.text !== null && <RichLine text={block.text as TextObject} />}
        {fields.length > 0 && (
          <div className="fields">
            {fields.map((field, i) => (
              <div key={i} className="field">
                <RichLine text={field} />
              </div>
            ))}
          </div>
        )}
      </div>
      {accessory && (
        <div className="accessory">
          <ElementView
            key={`${block.block_id}/${accessory.action_id}`}
            element={accessory}
            block={block.block_id ?? ''}
            dispatch
          />
        </div>
      )}
    </div>
  );
}

function Context({ block }: { block: Block }) {
  const elements = (block.elements as (Element | TextObject)[] | undefined) ?? [];
  return (
    <div className="block-context">
      {elements.map((element, i) =>
        element.type === 'image' ? (
          <BlockImage key={i} source={element as Element} size="icon" />
        ) : (
          <span key={i} className="context-text">
            <RichLine text={element as TextObject} />
          </span>
        ),
      )}
    </div>
  );
}

function Actions({ block }: { block: Block }) {
  const elements = (block.elements as Element[] | undefined) ?? [];
  return (
    <div className={block.type === 'actions' ? 'block-actions' : 'block-actions small'}>
      {elements.map((element, i) => (
        <ElementView
          key={`${block.block_id}/${element.action_id ?? i}`}
          element={element}
          block={block.block_id ?? ''}
          dispatch
        />
      ))}
    </div>
  );
}

function AlertBlock({ block }: { block: Block }) {
  const level = String(block.level ?? 'default');
  return (
    <div className={`block-alert ${level}`} role={level === 'error' || level === 'warning' ? 'alert' : undefined}>
      {level === 'error' || level === 'warning' ? <Alert /> : <Info />}
      <div>
        <RichLine text={block.text as TextObject} />
      </div>
    </div>
  );
}
