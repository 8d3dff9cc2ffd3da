// Drives the playground's Slack with Slack's own Node SDK, as an app would, and
// acts as the people through the control API. Prints TAP; exits 0 when all holds.
//
//   BOLT_DIR=$(sh install.sh) PLAYGROUND_URL=http://127.0.0.1:8065 node check.mjs
//
// The tokens are read from the control API.
import { createRequire } from 'node:module';

const require = createRequire(`${process.env.BOLT_DIR}/`);
const { App, LogLevel } = require('@slack/bolt');
const url = process.env.PLAYGROUND_URL;
const channel = 'C0ENG';

const control = async (method, path, body) => {
  const res = await fetch(`${url}/_control/${path}`, {
    method,
    headers: { 'content-type': 'application/json' },
    body: body && JSON.stringify(body),
  });
  const answer = await res.json();
  if (!res.ok) throw new Error(`${method} ${path}: ${res.status} ${JSON.stringify(answer)}`);
  return answer;
};
const post = (path, body) => control('POST', path, body);
const get = (path) => control('GET', path);

let count = 0;
let failed = 0;
const ok = (good, name, detail) => {
  count += 1;
  if (!good) failed += 1;
  console.log(`${good ? 'ok' : 'not ok'} ${count} - ${name}`);
  if (!good && detail !== undefined) console.log(`  # ${JSON.stringify(detail)}`);
};
const step = async (name, run) => {
  try {
    await run();
  } catch (err) {
    ok(false, `${name}: ${err.message}`, err.data ?? err.stack);
  }
};

/** Something that is to happen once. Whoever waits for it waits half a minute at most. */
const expect = (what) => {
  let resolve;
  const happened = new Promise((res) => {
    resolve = res;
  });
  return {
    resolve,
    get promise() {
      let timer;
      const late = new Promise((_, rej) => {
        timer = setTimeout(() => rej(new Error(`${what}: nothing within 30 s`)), 30000);
      });
      return Promise.race([happened, late]).finally(() => clearTimeout(timer));
    },
  };
};

const warnings = [];
const logger = {
  debug() {},
  info() {},
  warn: (...m) => warnings.push(m.join(' ')),
  error: (...m) => warnings.push(m.join(' ')),
  setLevel() {},
  getLevel: () => LogLevel.WARN,
  setName() {},
};

const { tokens, bot } = await get('state');
const app = new App({
  token: tokens.bot,
  appToken: tokens.app,
  socketMode: true,
  logger,
  clientOptions: { slackApiUrl: `${url}/api/` },
});
const errors = [];
app.error(async (err) => errors.push(err.message));

const mentions = expect('app_mention');
const messages = expect('message');
const direct = expect('direct message');
app.event('app_mention', async (args) => mentions.resolve(args));
app.message(/fix the test/, async (args) => messages.resolve(args));
app.message(/just us/, async (args) => direct.resolve(args));

const clicks = expect('block_actions');
app.action('approve', async (args) => {
  await args.ack();
  await args.respond({ text: 'Approved by response_url', replace_original: true });
  clicks.resolve(args);
});
app.action('details', async ({ ack, body, client }) => {
  await ack();
  await client.views.open({
    trigger_id: body.trigger_id,
    view: {
      type: 'modal',
      callback_id: 'reason',
      private_metadata: 'meta',
      title: { type: 'plain_text', text: 'Why?' },
      submit: { type: 'plain_text', text: 'Send' },
      close: { type: 'plain_text', text: 'Cancel' },
      notify_on_close: true,
      blocks: [
        {
          type: 'input',
          block_id: 'why',
          label: { type: 'plain_text', text: 'Reason' },
          element: { type: 'plain_text_input', action_id: 'text' },
        },
        {
          type: 'input',
          block_id: 'scope',
          label: { type: 'plain_text', text: 'Scope' },
          element: {
            type: 'static_select',
            action_id: 'pick',
            options: ['once', 'session'].map((v) => ({ text: { type: 'plain_text', text: v }, value: v })),
          },
        },
      ],
    },
  });
});
const submitted = expect('view_submission');
app.view('reason', async (args) => {
  if (args.view.state.values.why.text.value === 'no') {
    await args.ack({ response_action: 'errors', errors: { why: 'Say more.' } });
    return;
  }
  await args.ack();
  submitted.resolve(args);
});
const closed = expect('view_closed');
app.view({ callback_id: 'reason', type: 'view_closed' }, async (args) => {
  await args.ack();
  closed.resolve(args);
});
app.command('/deckhand', async ({ ack, command, respond }) => {
  await ack({ text: `heard ${command.text}`, response_type: 'ephemeral' });
  await respond({ text: 'and again later', response_type: 'in_channel' });
});
const homes = expect('app_home_opened');
app.event('app_home_opened', async (args) => {
  await args.client.views.publish({
    user_id: args.event.user,
    view: { type: 'home', blocks: [{ type: 'section', text: { type: 'mrkdwn', text: `*Hello* <@${args.event.user}>` } }] },
  });
  homes.resolve(args);
});
const joined = expect('member_joined_channel');
app.event('member_joined_channel', async (args) => joined.resolve(args));

await app.start();
ok(true, 'connects by socket mode');

let thread;
await step('mention', async () => {
  ({ ts: thread } = await post('messages', { user: 'U0LINUS', channel, text: '@deckhand please fix the test' }));
  const { event, context, body } = await mentions.promise;
  ok(event.ts === thread && event.user === 'U0LINUS' && event.text === `<@${bot.user}> please fix the test`, 'receives app_mention', event);
  ok(context.botUserId === bot.user && context.botId === bot.bot_id && context.teamId === 'T0PLAYGRND', 'context has the ids', context);
  ok(/^Ev/.test(body.event_id) && body.authorizations[0].user_id === bot.user, 'event_callback is complete', body);
  const { message } = await messages.promise;
  ok(message.channel_type === 'channel' && message.ts === thread, 'receives message.channels for the same post', message);
});

await step('post, update, react', async () => {
  const posted = await app.client.chat.postMessage({ channel, thread_ts: thread, text: 'working' });
  ok(posted.ok && posted.message.bot_id === bot.bot_id && posted.message.thread_ts === thread, 'chat.postMessage', posted);
  ok(posted.response_metadata.scopes.includes('chat:write') && posted.response_metadata.acceptedScopes.includes('chat:write'), 'scopes come in headers', posted.response_metadata);
  const updated = await app.client.chat.update({ channel, ts: posted.ts, text: 'done' });
  ok(updated.text === 'done' && updated.message.edited, 'chat.update', updated);
  await app.client.reactions.add({ channel, timestamp: thread, name: 'eyes' });
  const again = await app.client.reactions.add({ channel, timestamp: thread, name: 'eyes' }).catch((e) => e);
  ok(again.data?.error === 'already_reacted', 'already_reacted', again.data);
  const { permalink } = await app.client.chat.getPermalink({ channel, message_ts: posted.ts });
  ok(permalink.includes(`/archives/${channel}/p`), 'chat.getPermalink', permalink);
  const bad = await app.client.chat
    .postMessage({ channel, text: 'x', blocks: [{ type: 'section', text: { type: 'mrkdwn', text: 'x'.repeat(3001) } }] })
    .catch((e) => e);
  ok(
    bad.data?.error === 'invalid_blocks' && bad.data.response_metadata.messages.some((m) => m.includes('[json-pointer:/blocks/0/text/text]')),
    'invalid_blocks says where',
    bad.data,
  );
  const replies = await app.client.conversations.replies({ channel, ts: thread });
  ok(replies.messages.length === 2 && replies.messages[0].reply_count === 1, 'conversations.replies', replies);
});

let card;
await step('buttons', async () => {
  ({ ts: card } = await app.client.chat.postMessage({
    channel,
    thread_ts: thread,
    text: 'Approve?',
    blocks: [
      { type: 'section', text: { type: 'mrkdwn', text: '*Run* `go test`?' } },
      {
        type: 'actions',
        block_id: 'card',
        elements: [
          { type: 'button', action_id: 'approve', value: 'id-1', style: 'primary', text: { type: 'plain_text', text: 'Approve' } },
          { type: 'button', action_id: 'details', text: { type: 'plain_text', text: 'Details' } },
        ],
      },
    ],
  }));
  const opened = await post('actions', { user: 'U0ADA', channel, message_ts: card, action_id: 'details', expect: 'view' });
  const [view] = opened.views;
  ok(opened.acked && view.title.text === 'Why?' && view.private_metadata === 'meta', 'views.open with the trigger id', opened);
  const empty = await post(`views/${view.id}/submit`, { user: 'U0ADA' });
  ok(!empty.submitted && empty.errors.why && empty.errors.scope, 'required inputs are asked for', empty);
  const refused = await post(`views/${view.id}/submit`, { user: 'U0ADA', values: { why: { text: 'no' }, scope: { pick: 'once' } } });
  ok(refused.errors?.why === 'Say more.' && refused.view.id === view.id, 'response_action errors', refused);
  const sent = await post(`views/${view.id}/submit`, { user: 'U0ADA', values: { why: { text: 'because' } } });
  const { view: got } = await submitted.promise;
  ok(sent.cleared && got.state.values.scope.pick.selected_option.value === 'once', 'view_submission closes the modal', sent);
  const second = await post('actions', { user: 'U0ADA', channel, message_ts: card, action_id: 'details', expect: 'view' });
  await post(`views/${second.views[0].id}/close`, { user: 'U0ADA' });
  ok((await closed.promise).body.is_cleared === false, 'view_closed');
  const clicked = await post('actions', { user: 'U0ADA', channel, message_ts: card, action_id: 'approve', expect: 'message' });
  const { action, body } = await clicks.promise;
  ok(action.value === 'id-1' && body.user.id === 'U0ADA' && body.message.ts === card && body.container.thread_ts === thread, 'block_actions', body);
  ok(clicked.messages.some((m) => m.ts === card && m.text === 'Approved by response_url'), 'respond() replaces the original', clicked);
});

await step('ephemeral', async () => {
  await app.client.chat.postEphemeral({ channel, user: 'U0MALLORY', text: 'not you' });
  const { messages: list } = await get(`messages?channel=${channel}&user=U0MALLORY`);
  ok(list.some((m) => m.ephemeral_to === 'U0MALLORY' && m.text === 'not you'), 'chat.postEphemeral');
  const stranger = await app.client.chat.postEphemeral({ channel, user: 'U0GUEST', text: 'x' }).catch((e) => e);
  ok(stranger.data?.error === 'user_not_in_channel', 'user_not_in_channel', stranger.data);
});

await step('slash command', async () => {
  const answer = await post('slash', { user: 'U0LINUS', channel, text: '/deckhand costs', expect: 'message' });
  ok(answer.acked && answer.ephemerals.some((m) => m.text === 'heard costs'), 'a slash command is answered in the acknowledgement', answer);
});

await step('home tab', async () => {
  const { view, published } = await post('home', { user: 'U0GRACE' });
  ok(published && view.blocks[0].text.text === '*Hello* <@U0GRACE>', 'views.publish', view);
  ok((await homes.promise).event.tab === 'home', 'app_home_opened');
});

await step('files', async () => {
  const up = await app.client.files.uploadV2({
    channel_id: channel,
    thread_ts: thread,
    filename: 'diff.txt',
    title: 'A diff',
    content: '+added\n-removed\n',
    initial_comment: 'see the diff',
  });
  const [file] = up.files[0].files;
  ok(file.name === 'diff.txt' && file.title === 'A diff', 'files.uploadV2', up);
  const res = await fetch(file.url_private, { headers: { authorization: `Bearer ${tokens.bot}` } });
  ok((await res.text()) === '+added\n-removed\n', 'url_private with the token');
  const anonymous = await fetch(file.url_private, { redirect: 'manual' });
  ok(anonymous.status === 302, 'url_private without a token leads to the sign-in', anonymous.status);
});

await step('stream', async () => {
  const streamer = app.client.chatStream({
    channel,
    thread_ts: thread,
    recipient_team_id: 'T0PLAYGRND',
    recipient_user_id: 'U0LINUS',
    buffer_size: 8,
  });
  await streamer.append({ markdown_text: '**hello wo' });
  await streamer.append({ markdown_text: 'rld!** and more' });
  await streamer.append({ chunks: [{ type: 'task_update', id: 't1', title: 'Run tests', status: 'in_progress' }] });
  const { messages: live } = await get(`messages?channel=${channel}&thread_ts=${thread}`);
  ok(live.at(-1).stream?.state === 'live' && live.at(-1).text.startsWith('**hello world!**'), 'a stream is seen live', live.at(-1));
  const stopped = await streamer.stop({ markdown_text: ' end', chunks: [{ type: 'task_update', id: 't1', title: 'Run tests', status: 'complete' }] });
  ok(stopped.message.text === '**hello world!** and more end' && stopped.message.blocks.some((b) => b.type === 'task_card' && b.status === 'complete'), 'chat.stopStream', stopped.message);
  const late = await app.client.chat.appendStream({ channel, ts: stopped.ts, markdown_text: 'x' }).catch((e) => e);
  ok(late.data?.error === 'message_not_in_streaming_state', 'message_not_in_streaming_state', late.data);
});

await step('lists', async () => {
  const names = [];
  for await (const page of app.client.paginate('conversations.list', { limit: 2, types: 'public_channel,private_channel' })) {
    names.push(...page.channels.map((c) => c.name));
  }
  ok(names.includes('engineering') && names.includes('private-ops') && new Set(names).size === names.length, 'conversations.list by pages', names);
  const { user } = await app.client.users.info({ user: 'U0GUEST' });
  ok(user.is_restricted && user.is_ultra_restricted, 'a guest');
  const { users } = await app.client.usergroups.users.list({ usergroup: 'S0APPROVERS' });
  ok(users.includes('U0ADA') && users.includes('U0GRACE'), 'usergroups.users.list', users);
  const { channel: shared } = await app.client.conversations.info({ channel: 'C0SHARED' });
  ok(shared.is_ext_shared, 'a shared channel');
  const denied = await app.client.team.info().catch((e) => e);
  ok(denied.data?.error === 'missing_scope' && denied.data.needed === 'team:read', 'missing_scope', denied.data);
});

await step('direct message', async () => {
  await post('messages', { user: 'U0ADA', channel: 'D0ADA', text: 'just us' });
  const { message, say } = await direct.promise;
  ok(message.channel_type === 'im', 'message.im', message);
  await say('hello back');
});

await step('rate limit', async () => {
  await post('faults', { method: 'chat.update', status: 429, retry_after: 1 });
  const started = Date.now();
  await app.client.chat.update({ channel, ts: card, text: 'after the limit' });
  const { calls } = await get('calls?method=chat.update');
  ok(calls.some((c) => c.status === 429) && calls.at(-1).answer.ok && Date.now() - started >= 1000, 'a 429 is waited out', calls.at(-1));
});

await step('reconnect', async () => {
  const before = (await get('calls?method=apps.connections.open')).calls.length;
  await post('faults', { disconnect: 'refresh_requested' });
  for (let i = 0; i < 300 && (await get('calls?method=apps.connections.open')).calls.length === before; i += 1) {
    await new Promise((res) => setTimeout(res, 100));
  }
  await post('members', { user: 'U0GUEST', channel });
  ok((await joined.promise).event.user === 'U0GUEST', 'it reconnects after a disconnect frame and receives events');
});

ok(errors.length === 0, 'no error reached the app', errors);
const unexpected = warnings.filter((w) => !/rate limit|no more than|must be less|failed to match/i.test(w));
ok(unexpected.length === 0, 'the SDK had nothing to warn of', unexpected);
await app.stop();
console.log(`1..${count}`);
process.exit(failed ? 1 : 0);
