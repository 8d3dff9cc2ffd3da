import type { Block, Element, ElementValue, Option, StateValues } from '../slack/types';

/** The value that an element has before anybody touches it, as Slack gives it in `state.values`. */
export function initialValue(element: Element): ElementValue {
  const { type } = element;
  const list = <T>(field: string) => (element[field] as T[] | undefined) ?? [];
  const one = <T>(field: string) => (element[field] as T | undefined) ?? null;
  switch (type) {
    case 'static_select':
    case 'external_select':
    case 'radio_buttons':
      return { type, selected_option: one<Option>('initial_option') };
    case 'multi_static_select':
    case 'multi_external_select':
    case 'checkboxes':
      return { type, selected_options: list<Option>('initial_options') };
    case 'users_select':
      return { type, selected_user: one<string>('initial_user') };
    case 'multi_users_select':
      return { type, selected_users: list<string>('initial_users') };
    case 'channels_select':
      return { type, selected_channel: one<string>('initial_channel') };
    case 'multi_channels_select':
      return { type, selected_channels: list<string>('initial_channels') };
    case 'conversations_select':
      return { type, selected_conversation: one<string>('initial_conversation') };
    case 'multi_conversations_select':
      return { type, selected_conversations: list<string>('initial_conversations') };
    case 'datepicker':
      return { type, selected_date: one<string>('initial_date') };
    case 'timepicker':
      return { type, selected_time: one<string>('initial_time') };
    case 'datetimepicker':
      return { type, selected_date_time: one<number>('initial_date_time') };
    case 'rich_text_input':
      return { type, rich_text_value: one<Block>('initial_value') };
    default:
      return { type, value: one<string>('initial_value') };
  }
}

const stateful = /select$|^radio_buttons$|^checkboxes$|picker$|input$/;

/** The elements of a block that take part in `state.values`. */
function elementsOf(block: Block): Element[] {
  const candidates = [block.element, block.accessory, ...(Array.isArray(block.elements) ? block.elements : [])] as (
    Element | undefined
  )[];
  return candidates.filter((element): element is Element => !!element?.action_id && stateful.test(element.type));
}

/** Every block, also those inside containers. */
function flatten(blocks: readonly Block[]): Block[] {
  return blocks.flatMap((block) => [block, ...flatten((block.child_blocks as Block[] | undefined) ?? [])]);
}

/** The whole state of a form: what was entered, and initial values for the rest. */
export function stateOf(blocks: readonly Block[], entered: StateValues): StateValues {
  const out: StateValues = {};
  for (const block of flatten(blocks)) {
    for (const element of elementsOf(block)) {
      const id = block.block_id ?? '';
      const action = element.action_id as string;
      (out[id] ??= {})[action] = entered[id]?.[action] ?? initialValue(element);
    }
  }
  return out;
}

/** Whether a value counts as given. */
export function isFilled(value: ElementValue): boolean {
  return Object.entries(value).some(([key, held]) => {
    if (key === 'type' || held === null || held === undefined) return false;
    return Array.isArray(held) ? held.length > 0 : held !== '';
  });
}

function count(element: Element, field: string): number | undefined {
  const value = Number(element[field]);
  return element[field] === undefined || Number.isNaN(value) ? undefined : value;
}

function problem(element: Element, value: ElementValue): string | undefined {
  const text = value.value ?? '';
  const min = count(element, 'min_length');
  if (min !== undefined && text.length < min) return `Please enter at least ${min} characters.`;
  const max = count(element, 'max_length');
  if (max !== undefined && text.length > max) return `Please enter at most ${max} characters.`;
  if (element.type === 'email_text_input' && !/^\S+@\S+\.\S+$/.test(text)) return 'This is not an email address.';
  if (element.type === 'url_text_input' && !/^https?:\/\/\S+$/.test(text))
    return 'Please enter a whole address, with https://.';
  if (element.type === 'number_input') return numberProblem(element, text);
  return undefined;
}

function numberProblem(element: Element, text: string): string | undefined {
  const number = Number(text);
  if (Number.isNaN(number)) return 'Please enter a number.';
  if (element.is_decimal_allowed === false && !Number.isInteger(number)) return 'Please enter a whole number.';
  const min = count(element, 'min_value');
  if (min !== undefined && number < min) return `Please enter ${min} or more.`;
  const max = count(element, 'max_value');
  if (max !== undefined && number > max) return `Please enter ${max} or less.`;
  return undefined;
}

/** What Slack's own client refuses before the app sees it: block_id → sentence. */
export function formErrors(blocks: readonly Block[], entered: StateValues): Record<string, string> {
  const errors: Record<string, string> = {};
  for (const block of flatten(blocks)) {
    if (block.type !== 'input') continue;
    const element = block.element as Element;
    const value = entered[block.block_id ?? '']?.[element.action_id ?? ''] ?? initialValue(element);
    const message = isFilled(value)
      ? problem(element, value)
      : block.optional
        ? undefined
        : 'Please complete this required field.';
    if (message) errors[block.block_id ?? ''] = message;
  }
  return errors;
}
