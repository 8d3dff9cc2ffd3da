import { describe, expect, it } from 'vitest';
import { formErrors, initialValue, stateOf } from '../elements/values';
import { typed } from '../message/EditBox';
import { ringPath, ticks } from '../blocks/scale';
import { formatRoute, parseRoute } from '../shell/route';
import { channelTimeline, compareTs, mentions, rows, threadTimeline, type Messages } from './timeline';
import type { Block, Message } from './types';
import { applyEvent, statusKey, type Snapshot } from './workspace';

const say = (ts: string, rest: Partial<Message> = {}): Message => ({
  ts,
  channel: 'C1',
  user: 'U1',
  text: ts,
  ...rest,
});
const table = (...messages: Message[]): Messages =>
  Object.fromEntries(messages.map((message) => [message.ts, message]));
const none = new Set<string>();

describe('timelines', () => {
  const messages = table(
    say('100.000002'),
    say('100.000001'),
    say('101.000000', { thread_ts: '100.000001' }),
    say('102.000000', { thread_ts: '100.000001', broadcast: true }),
    say('103.000000', { ephemeral_to: 'U2' }),
    say('104.000000', { thread_ts: '100.000001', ephemeral_to: 'U1' }),
  );
  const ts = (list: Message[]) => list.map((message) => message.ts);

  it('shows a channel without replies, but with those that were sent to it', () => {
    expect(ts(channelTimeline(messages, 'U1', none))).toEqual(['100.000001', '100.000002', '102.000000']);
  });
  it('shows ephemeral messages to their reader only', () => {
    expect(ts(channelTimeline(messages, 'U2', none))).toContain('103.000000');
    expect(ts(threadTimeline(messages, '100.000001', 'U1', none))).toEqual([
      '100.000001',
      '101.000000',
      '102.000000',
      '104.000000',
    ]);
    expect(ts(threadTimeline(messages, '100.000001', 'U2', none))).not.toContain('104.000000');
  });
  it('leaves out what was dismissed', () => {
    expect(ts(channelTimeline(messages, 'U2', new Set(['103.000000'])))).not.toContain('103.000000');
  });
  it('orders by time, also over a change of length', () => {
    expect(['1000.000001', '999.000001'].sort(compareTs)).toEqual(['999.000001', '1000.000001']);
  });
  it('joins messages of one author within five minutes', () => {
    const at = 1_700_000_000;
    const list = rows([
      say(`${at}.000001`),
      say(`${at + 60}.000001`),
      say(`${at + 70}.000001`, { user: 'U2' }),
      say(`${at + 900}.000001`, { user: 'U2' }),
    ]);
    expect(list.map((row) => row.compact)).toEqual([false, true, false, false]);
    expect(list.map((row) => row.newDay)).toEqual([true, false, false, false]);
  });
  it('knows a mention in text and in blocks', () => {
    const ada = { id: 'U9', name: 'ada', real_name: 'Ada' };
    expect(mentions(say('1.1', { text: 'hi <@U9>' }), ada)).toBe(true);
    expect(
      mentions(
        say('1.1', { text: '', blocks: [{ type: 'rich_text', elements: [{ type: 'user', user_id: 'U9' }] }] }),
        ada,
      ),
    ).toBe(true);
    expect(mentions(say('1.1', { text: 'hi <@U8>' }), ada)).toBe(false);
  });
});

describe('applyEvent', () => {
  const empty: Snapshot = {
    link: 'live',
    messages: {},
    views: {},
    homes: {},
    statuses: {},
    sessions: {},
    prompts: {},
    notifications: [],
    toasts: [],
  };
  const view = (id: string, previous?: string) => ({
    id,
    type: 'modal' as const,
    blocks: [],
    previous_view_id: previous,
  });

  it('replaces a message and counts replies that came before their root said so', () => {
    let snapshot = applyEvent(empty, { kind: 'message', message: say('1.000001') });
    snapshot = applyEvent(snapshot, { kind: 'message', message: say('2.000001', { thread_ts: '1.000001' }) });
    expect(snapshot.messages.C1?.['1.000001']).toMatchObject({ reply_count: 1, latest_reply: '2.000001' });
    snapshot = applyEvent(snapshot, { kind: 'message', message: say('1.000001', { text: 'new', reply_count: 1 }) });
    expect(snapshot.messages.C1?.['1.000001']?.text).toBe('new');
    expect(
      applyEvent(snapshot, { kind: 'deleted', channel: 'C1', ts: '1.000001' }).messages.C1?.['1.000001'],
    ).toBeUndefined();
    expect(snapshot.messages.C1?.['1.000001']).toBeDefined();
  });
  it('keeps the stack of modals', () => {
    let snapshot = applyEvent(empty, { kind: 'view', user: 'U1', view: view('V1') });
    snapshot = applyEvent(snapshot, { kind: 'view', user: 'U1', view: view('V2', 'V1') });
    expect(snapshot.views.U1?.map((v) => v.id)).toEqual(['V1', 'V2']);
    expect(applyEvent(snapshot, { kind: 'view', user: 'U1', view: view('V1') }).views.U1?.map((v) => v.id)).toEqual([
      'V1',
    ]);
    expect(applyEvent(snapshot, { kind: 'view', user: 'U1', view: view('V3') }).views.U1?.map((v) => v.id)).toEqual([
      'V3',
    ]);
    expect(applyEvent(snapshot, { kind: 'view', user: 'U1', view: null }).views.U1).toEqual([]);
  });
  it('keeps a status per thread', () => {
    const snapshot = applyEvent(empty, { kind: 'status', channel: 'C1', thread_ts: '1.1', status: 'is reading…' });
    expect(snapshot.statuses[statusKey('C1', '1.1')]).toBe('is reading…');
  });
  it('ignores events that it does not know', () => {
    expect(applyEvent(empty, { kind: 'new thing' } as never)).toBe(empty);
  });
});

describe('typed', () => {
  const directory = {
    users: new Map([['U1', { id: 'U1', name: 'ada', real_name: 'Ada Admin' }]]),
    channels: new Map([['C1', { id: 'C1', name: 'eng' }]]),
    groups: new Map([['S1', { id: 'S1', handle: 'approvers' }]]),
  };
  it('gives a text back as a person wrote it', () => {
    expect(
      typed(
        '<@U1> in <#C1|eng>: a &lt; b, see <https://example.com/?a=1&amp;b=2>, <!subteam^S1|@approvers> <!here> &lt;b&gt;',
        directory,
      ),
    ).toBe('@ada in #eng: a < b, see https://example.com/?a=1&b=2, @approvers @here <b>');
  });
});

describe('forms', () => {
  const plain = (text: string) => ({ type: 'plain_text', text });
  const option = { text: { type: 'plain_text' as const, text: 'One' }, value: '1' };
  const blocks: Block[] = [
    {
      type: 'input',
      block_id: 'why',
      label: plain('Why'),
      element: { type: 'plain_text_input', action_id: 'text', min_length: 3 },
    },
    {
      type: 'input',
      block_id: 'kind',
      label: plain('Kind'),
      optional: true,
      element: { type: 'static_select', action_id: 'kind', options: [option], initial_option: option },
    },
    {
      type: 'section',
      block_id: 'days',
      text: plain('Days'),
      accessory: { type: 'checkboxes', action_id: 'days', options: [option] },
    },
    {
      type: 'actions',
      block_id: 'go',
      elements: [
        { type: 'button', action_id: 'go', text: plain('Go') },
        { type: 'datepicker', action_id: 'when', initial_date: '2024-05-01' },
      ],
    },
    {
      type: 'container',
      child_blocks: [
        {
          type: 'input',
          block_id: 'inner',
          optional: true,
          label: plain('Inner'),
          element: { type: 'number_input', action_id: 'n', is_decimal_allowed: false, max_value: '5' },
        },
      ],
    },
  ];

  it("gives Slack's state.values, buttons left out", () => {
    expect(stateOf(blocks, { why: { text: { type: 'plain_text_input', value: 'because' } } })).toEqual({
      why: { text: { type: 'plain_text_input', value: 'because' } },
      kind: { kind: { type: 'static_select', selected_option: option } },
      days: { days: { type: 'checkboxes', selected_options: [] } },
      go: { when: { type: 'datepicker', selected_date: '2024-05-01' } },
      inner: { n: { type: 'number_input', value: null } },
    });
  });
  it("finds what Slack's client would refuse", () => {
    expect(formErrors(blocks, {})).toEqual({ why: 'Please complete this required field.' });
    const entered = {
      why: { text: { type: 'plain_text_input', value: 'no' } },
      inner: { n: { type: 'number_input', value: '7' } },
    };
    expect(formErrors(blocks, entered)).toEqual({
      why: 'Please enter at least 3 characters.',
      inner: 'Please enter 5 or less.',
    });
    expect(formErrors(blocks, { why: { text: { type: 'plain_text_input', value: 'yes' } } })).toEqual({});
  });
  it('starts each element with its initial value', () => {
    expect(initialValue({ type: 'multi_users_select', action_id: 'a', initial_users: ['U1'] })).toEqual({
      type: 'multi_users_select',
      selected_users: ['U1'],
    });
    expect(initialValue({ type: 'datetimepicker', action_id: 'a', initial_date_time: 5 })).toEqual({
      type: 'datetimepicker',
      selected_date_time: 5,
    });
  });
});

describe('routes', () => {
  it.each([
    ['#/c/C1', '', { channel: 'C1' }],
    ['#/c/C1/t/1.000002?user=U1', '', { channel: 'C1', thread: '1.000002', user: 'U1' }],
    ['#/c/C1', '?user=U2', { channel: 'C1', user: 'U2' }],
    ['#/home', '', { home: true }],
    ['', '', {}],
    ['#/nonsense/x', '', {}],
  ])('%s%s', (hash, search, want) => expect(parseRoute(hash, search)).toEqual(want));
  it('writes what it reads', () => {
    for (const hash of ['#/c/C1', '#/c/C1/t/1.000002?user=U1', '#/home?user=U1'])
      expect(formatRoute(parseRoute(hash, ''))).toBe(hash);
  });
});

describe('scale', () => {
  it('covers the values with round steps', () => {
    expect(ticks(0, 97, 4)).toEqual([0, 50, 100]);
    expect(ticks(-3, 3, 4)).toEqual([-4, -2, 0, 2, 4]);
    expect(ticks(0, 0.004, 4)).toEqual([0, 0.001, 0.002, 0.003, 0.004]);
    expect(ticks(0, 0, 4).length).toBeGreaterThan(1);
  });
  it('draws a whole turn', () => expect(ringPath(0, 0, 10, 5, 0, 1)).not.toContain('NaN'));
});
