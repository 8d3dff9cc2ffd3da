import { createContext, useContext } from 'react';
import type { Confirm, Element, ElementValue, StateValues } from '../slack/types';
import { useConfirm } from '../ui/Confirm';
import { initialValue } from './values';

/** Where blocks are drawn, and what happens there when somebody uses an element. */
export interface Surface {
  kind: 'message' | 'modal' | 'home';
  /** The conversation that the blocks stand in. */
  channel?: string;
  values: StateValues;
  setValue: (block: string, action: string, value: ElementValue) => void;
  /** Sends the action to the app. Resolves when the app has acknowledged it; false when it has not. */
  act: (block: string, element: Element, value: ElementValue) => Promise<boolean>;
}

export const inert: Surface = {
  kind: 'message',
  values: {},
  setValue: () => undefined,
  act: () => Promise.resolve(true),
};

export const SurfaceContext = createContext<Surface>(inert);
export const useSurface = () => useContext(SurfaceContext);

/** What every element's component gets. */
export interface ElementProps {
  element: Element;
  block: string;
  /** Whether a change is an action of its own, or only part of a form. */
  dispatch: boolean;
  /** The id of the label that stands outside the element, in an input block. */
  labelledBy?: string;
  describedBy?: string;
  invalid?: boolean;
}

/** An element's present value, and the two ways to change it. */
export function useElement({ element, block, dispatch }: ElementProps) {
  const surface = useSurface();
  const confirm = useConfirm();
  const action = element.action_id ?? '';
  const value = surface.values[block]?.[action] ?? initialValue(element);

  /** Keeps a value in the form without telling the app. */
  const keep = (next: ElementValue) => surface.setValue(block, action, next);

  /** Whether the person means it: asks if the element wants that. */
  const confirmed = async () => !dispatch || !element.confirm || (await confirm(element.confirm as Confirm));

  /** Keeps a value and sends it to the app where that is due. False when the app did not acknowledge it. */
  const send = (next: ElementValue): Promise<boolean> => {
    keep(next);
    return dispatch ? surface.act(block, element, next) : Promise.resolve(true);
  };

  /** A person's choice, from the question to the sending. */
  const choose = async (next: ElementValue) => {
    if (await confirmed()) await send(next);
  };

  return { surface, value, keep, confirmed, send, choose };
}
