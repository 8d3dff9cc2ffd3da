import { useId } from 'react';
import { ElementView } from '../elements/ElementView';
import type { Block, Element, TextObject } from '../slack/types';
import { Alert } from '../ui/icons';
import { PlainText } from './TextObject';

/** A labelled input with its hint, and what is wrong with it. */
export function InputBlock({ block, error }: { block: Block; error?: string }) {
  const id = useId();
  const element = block.element as Element;
  return (
    <div className="block-input" data-block-id={block.block_id}>
      <div className="input-label" id={`${id}-label`}>
        <PlainText text={block.label as TextObject} />
        {block.optional === true && <span className="input-optional"> (optional)</span>}
      </div>
      <ElementView
        key={`${block.block_id}/${element.action_id}`}
        element={element}
        block={block.block_id ?? ''}
        dispatch={block.dispatch_action === true}
        labelledBy={`${id}-label`}
        describedBy={`${id}-error ${id}-hint`}
        invalid={error !== undefined}
      />
      {error !== undefined && (
        <div className="input-error" id={`${id}-error`} role="alert">
          <Alert size={15} /> {error}
        </div>
      )}
      {block.hint !== undefined && block.hint !== null && (
        <div className="input-hint" id={`${id}-hint`}>
          <PlainText text={block.hint as TextObject} />
        </div>
      )}
    </div>
  );
}
