import { useEffect, useMemo, useState } from 'react';
import { Blocks } from '../blocks/Blocks';
import { PlainText } from '../blocks/TextObject';
import { SurfaceContext, type Surface } from '../elements/surface';
import { formErrors, stateOf } from '../elements/values';
import { useActions } from '../shell/actions';
import { useDirectory } from '../shell/directory';
import { useStore } from '../shell/useWorkspace';
import { api } from '../slack/api';
import type { StateValues, View } from '../slack/types';
import { Dialog } from '../ui/Dialog';
import { Alert } from '../ui/icons';

function without(errors: Record<string, string>, block: string): Record<string, string> {
  if (!(block in errors)) return errors;
  const { [block]: _, ...rest } = errors;
  return rest;
}

/** A modal of the app: the topmost of its stack. What was entered belongs to the view's id and outlives its updates. */
export function ModalView({ view, depth }: { view: View; depth: number }) {
  const { me } = useDirectory();
  const { act } = useActions();
  const store = useStore();
  const [entered, setEntered] = useState<StateValues>({});
  const [errors, setErrors] = useState<Record<string, string>>({});
  const [refusals, setRefusals] = useState(0);
  const [busy, setBusy] = useState(false);

  useEffect(() => {
    setEntered({});
    setErrors({});
    setBusy(false);
  }, [view.id]);

  const surface = useMemo<Surface>(
    () => ({
      kind: 'modal',
      values: entered,
      setValue: (block, action, value) => {
        setEntered((before) => ({ ...before, [block]: { ...before[block], [action]: value } }));
        setErrors((before) => without(before, block));
      },
      act: (block, element, value) => {
        const now = { ...entered, [block]: { ...entered[block], [element.action_id ?? '']: value } };
        return act({ view_id: view.id, entered: stateOf(view.blocks, now) }, block, element, value);
      },
    }),
    [entered, act, view],
  );

  const close = (all: boolean) => {
    void store.attempt(async () => {
      await api.close(view.id, me.id, all);
      await store.watch(me.id);
    });
  };
  const refuse = (found: Record<string, string>) => {
    setErrors(found);
    setRefusals((before) => before + 1);
  };
  const submit = async () => {
    if (busy || !view.submit) return;
    const found = formErrors(view.blocks, entered);
    if (Object.keys(found).length > 0) return refuse(found);
    setBusy(true);
    const answer = await store.attempt(() => api.submit(view.id, me.id, stateOf(view.blocks, entered)));
    setBusy(false);
    if (answer === false) return;
    if (answer.errors && Object.keys(answer.errors).length > 0) refuse(answer.errors);
    else await store.watch(me.id);
  };

  // What is wrong comes into view, and the person into it.
  useEffect(() => {
    if (refusals > 0) document.querySelector<HTMLElement>('[data-testid="modal"] [aria-invalid="true"]')?.focus();
  }, [refusals]);

  const shown = new Set(view.blocks.map((block) => block.block_id));
  const stray = Object.entries(errors).filter(([block]) => !shown.has(block));
  return (
    <Dialog
      key={view.id}
      title={<PlainText text={view.title} fallback="Deckhand" />}
      testId="modal"
      onClose={() => close(true)}
      onBack={depth > 1 ? () => close(false) : undefined}
      onSubmit={() => void submit()}
      footer={
        <>
          <button type="button" className="button" onClick={() => close(false)}>
            <PlainText text={view.close} fallback={view.submit ? 'Cancel' : 'Close'} />
          </button>
          {view.submit && (
            <button
              type="submit"
              className="button primary"
              disabled={busy}
              aria-busy={busy}
              data-testid="modal-submit"
            >
              <PlainText text={view.submit} fallback="Submit" />
            </button>
          )}
        </>
      }
    >
      <SurfaceContext value={surface}>
        <Blocks blocks={view.blocks} errors={errors} />
      </SurfaceContext>
      {stray.map(([block, message]) => (
        <div key={block} className="input-error" role="alert">
          <Alert size={15} /> {message}
        </div>
      ))}
    </Dialog>
  );
}
