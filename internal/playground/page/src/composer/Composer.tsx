import {
  useCallback,
  useEffect,
  useId,
  useLayoutEffect,
  useRef,
  useState,
  type ClipboardEvent,
  type DragEvent,
  type KeyboardEvent,
} from 'react';
import { EmojiGrid } from '../message/Reactions';
import { useActions } from '../shell/actions';
import { useDirectory } from '../shell/directory';
import { emojiChar } from '../text/emoji';
import { fileSize } from '../text/format';
import { At, Bold, Bolt, Clip, Close, Code, CodeBlock, Doc, Italic, Send, Smile, Strike } from '../ui/icons';
import { Popover } from '../ui/Popover';
import { complete, triggerAt, wrap, type Trigger } from './complete';
import { Suggestions, useSuggestions, type Suggestion } from './Suggestions';

/** What is typed and not yet sent, by place and person, as long as the page lives. */
const drafts = new Map<string, string>();

/** A text that another part of the page wants to see in the composer. */
export interface Suggested {
  text: string;
  id: number;
}

export function Composer(props: {
  channel: string;
  thread?: string;
  placeholder: string;
  testId: string;
  autoFocus?: boolean;
  suggested?: Suggested;
}) {
  const { channel, thread } = props;
  const { me } = useDirectory();
  const { send } = useActions();
  const place = `${me.id}/${channel}/${thread ?? ''}`;
  const box = useRef<HTMLTextAreaElement>(null);
  const listId = useId();
  const [text, setText] = useState(drafts.get(place) ?? '');
  const [files, setFiles] = useState<File[]>([]);
  const [trigger, setTrigger] = useState<Trigger>();
  const [selected, setSelected] = useState(0);
  const [over, setOver] = useState(false);
  const suggestions = useSuggestions(trigger);
  const open = trigger !== undefined && suggestions.length > 0;

  const change = useCallback(
    (next: string) => {
      setText(next);
      if (next === '') drafts.delete(place);
      else drafts.set(place, next);
    },
    [place],
  );

  useEffect(() => {
    setText(drafts.get(place) ?? '');
    setFiles([]);
    setTrigger(undefined);
    if (props.autoFocus) box.current?.focus();
  }, [place, props.autoFocus]);

  useEffect(() => {
    if (!props.suggested) return;
    change(props.suggested.text);
    box.current?.focus();
  }, [props.suggested, change]);

  // Where the caret goes once the text that was put in is there.
  const caret = useRef<{ from: number; to: number }>(undefined);
  useLayoutEffect(() => {
    if (!box.current || !caret.current) return;
    box.current.focus();
    box.current.setSelectionRange(caret.current.from, caret.current.to);
    caret.current = undefined;
    look(box.current);
  });

  useLayoutEffect(() => {
    if (!box.current) return;
    box.current.style.height = 'auto';
    box.current.style.height = `${Math.min(box.current.scrollHeight, innerHeight * 0.4)}px`;
  }, [text]);

  const look = (at: { value: string; selectionStart: number; selectionEnd: number }) => {
    setTrigger(at.selectionStart === at.selectionEnd ? triggerAt(at.value, at.selectionStart) : undefined);
    setSelected(0);
  };
  const put = (next: string, from: number, to = from) => {
    caret.current = { from, to };
    change(next);
  };
  const insert = (what: string) => {
    const at = box.current?.selectionStart ?? text.length;
    const end = box.current?.selectionEnd ?? at;
    put(text.slice(0, at) + what + text.slice(end), at + what.length);
  };
  const accept = (suggestion: Suggestion) => {
    if (!trigger) return;
    const next = complete(text, box.current?.selectionStart ?? text.length, trigger, suggestion.insert);
    setTrigger(undefined);
    put(next.text, next.caret);
  };
  const format = (mark: string) => {
    const area = box.current;
    if (!area) return;
    const next = wrap(text, area.selectionStart, area.selectionEnd, mark);
    put(next.text, next.from, next.to);
  };

  const busy = useRef(false);
  const submit = async () => {
    if (busy.current || (text.trim() === '' && files.length === 0)) return;
    busy.current = true;
    const was = { text, files };
    change('');
    setFiles([]);
    setTrigger(undefined);
    const sent = await send({ channel, thread, text: was.text.trim(), files: was.files });
    busy.current = false;
    if (!sent) {
      change(was.text);
      setFiles(was.files);
    }
  };

  const keys = (event: KeyboardEvent<HTMLTextAreaElement>) => {
    if (event.nativeEvent.isComposing) return;
    if (open) {
      const last = suggestions.length - 1;
      const to = { ArrowDown: selected === last ? 0 : selected + 1, ArrowUp: selected === 0 ? last : selected - 1 }[
        event.key
      ];
      if (to !== undefined) {
        event.preventDefault();
        setSelected(to);
        return;
      }
      if (
        event.key === 'Tab' ||
        (event.key === 'Enter' &&
          !event.shiftKey &&
          !(trigger.kind === '/' && suggestions.some((s) => s.insert === text.trim())))
      ) {
        event.preventDefault();
        const suggestion = suggestions[selected];
        if (suggestion) accept(suggestion);
        return;
      }
      if (event.key === 'Escape') {
        event.preventDefault();
        event.stopPropagation();
        setTrigger(undefined);
        return;
      }
    }
    if (event.key === 'Enter' && !event.shiftKey) {
      event.preventDefault();
      void submit();
    } else if ((event.ctrlKey || event.metaKey) && !event.altKey) {
      const mark = { b: '*', i: '_', e: '`' }[event.key.toLowerCase()];
      if (!mark) return;
      event.preventDefault();
      format(mark);
    }
  };

  const add = (list: FileList | null) => {
    const added = [...(list ?? [])]; // the list empties itself when its input is reset
    setFiles((before) => [...before, ...added].slice(0, 10));
  };
  const paste = (event: ClipboardEvent) => {
    if (event.clipboardData.files.length === 0) return;
    event.preventDefault();
    add(event.clipboardData.files);
  };
  const drop = (event: DragEvent) => {
    event.preventDefault();
    setOver(false);
    add(event.dataTransfer.files);
  };

  const ready = text.trim() !== '' || files.length > 0;
  return (
    <div
      className={over ? 'composer over' : 'composer'}
      onDragOver={(event) => {
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={() => setOver(false)}
      onDrop={drop}
    >
      {open && (
        <Suggestions id={listId} suggestions={suggestions} selected={selected} onHover={setSelected} onPick={accept} />
      )}
      <textarea
        ref={box}
        rows={1}
        data-testid={props.testId}
        placeholder={props.placeholder}
        aria-label={props.placeholder}
        role="combobox"
        aria-expanded={open}
        aria-controls={open ? listId : undefined}
        aria-autocomplete="list"
        aria-activedescendant={open ? `${listId}-${selected}` : undefined}
        spellCheck
        value={text}
        onChange={(event) => {
          change(event.target.value);
          look(event.target);
        }}
        onClick={(event) => look(event.currentTarget)}
        onKeyUp={(event) => ['ArrowLeft', 'ArrowRight', 'Home', 'End'].includes(event.key) && look(event.currentTarget)}
        onKeyDown={keys}
        onBlur={() => setTrigger(undefined)}
        onPaste={paste}
      />
      {files.length > 0 && (
        <ul className="composer-files">
          {files.map((file, i) => (
            <li key={i}>
              <Doc size={16} />
              <span>{file.name}</span>
              <small>{fileSize(file.size)}</small>
              <button
                type="button"
                className="icon-button"
                aria-label={`Remove ${file.name}`}
                onClick={() => setFiles(files.filter((_, other) => other !== i))}
              >
                <Close size={14} />
              </button>
            </li>
          ))}
        </ul>
      )}
      <Bar
        ready={ready}
        onAttach={add}
        onMention={() => insert(text === '' || /\s$/.test(text.slice(0, box.current?.selectionStart)) ? '@' : ' @')}
        onEmoji={(name) => insert(`${emojiChar(name) ?? `:${name}:`} `)}
        onFormat={format}
        onSend={() => void submit()}
      />
    </div>
  );
}

function Bar(props: {
  ready: boolean;
  onAttach: (files: FileList | null) => void;
  onMention: () => void;
  onEmoji: (name: string) => void;
  onFormat: (mark: string) => void;
  onSend: () => void;
}) {
  const { me, workspace } = useDirectory();
  const { shortcut } = useActions();
  const shortcuts = (workspace.shortcuts ?? []).filter((offered) => offered.type === 'global' && !me.stranger);
  const picker = useRef<HTMLInputElement>(null);
  const smile = useRef<HTMLButtonElement>(null);
  const [emoji, setEmoji] = useState(false);
  const tool = (label: string, icon: React.ReactNode, onClick: () => void) => (
    <button
      type="button"
      className="icon-button"
      aria-label={label}
      title={label}
      onMouseDown={(event) => event.preventDefault()}
      onClick={onClick}
    >
      {icon}
    </button>
  );
  return (
    <div className="composer-bar">
      {tool('Attach a file', <Clip />, () => picker.current?.click())}
      <input
        ref={picker}
        type="file"
        multiple
        hidden
        data-testid="file-input"
        onChange={(event) => {
          props.onAttach(event.target.files);
          event.target.value = '';
        }}
      />
      {tool('Mention someone', <At />, props.onMention)}
      <button
        ref={smile}
        type="button"
        className="icon-button"
        aria-label="Emoji"
        title="Emoji"
        aria-haspopup="dialog"
        aria-expanded={emoji}
        onClick={() => setEmoji(!emoji)}
      >
        <Smile />
      </button>
      {emoji && (
        <Popover anchor={smile} onClose={() => setEmoji(false)}>
          <EmojiGrid
            onPick={(name) => {
              setEmoji(false);
              props.onEmoji(name);
            }}
          />
        </Popover>
      )}
      {shortcuts.map((offered) => (
        <span key={offered.callback_id}>{tool(offered.name, <Bolt />, () => shortcut(offered.callback_id))}</span>
      ))}
      <span className="composer-format">
        <i className="composer-rule" />
        {tool('Bold (Ctrl+B)', <Bold size={16} />, () => props.onFormat('*'))}
        {tool('Italic (Ctrl+I)', <Italic size={16} />, () => props.onFormat('_'))}
        {tool('Strikethrough', <Strike size={16} />, () => props.onFormat('~'))}
        {tool('Code (Ctrl+E)', <Code size={16} />, () => props.onFormat('`'))}
        {tool('Code block', <CodeBlock size={16} />, () => props.onFormat('```'))}
      </span>
      <button
        type="button"
        className="send"
        aria-label="Send"
        title="Send (Enter)"
        disabled={!props.ready}
        onClick={props.onSend}
      >
        <Send size={17} />
      </button>
    </div>
  );
}
