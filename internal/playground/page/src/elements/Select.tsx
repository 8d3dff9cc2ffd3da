import type { Element, ElementValue, Option, OptionGroup, TextObject } from '../slack/types';
import { channelName, nameOf, useDirectory, visibleChannels, type Directory } from '../shell/directory';
import { withEmoji } from '../text/emoji';
import { Avatar } from '../ui/Avatar';
import { Hash, Lock } from '../ui/icons';
import { Picker, type Choice, type ChoiceGroup } from '../ui/Picker';
import { useElement, type ElementProps } from './surface';

const asChoice = (option: Option): Choice => ({
  value: option.value,
  label: withEmoji(option.text.text),
  hint: option.description?.text,
});

/** Static and external selects, one or several options. */
export function OptionSelect(props: ElementProps) {
  const { element } = props;
  const { value, choose } = useElement(props);
  const multiple = element.type.startsWith('multi_');
  const options = (element.options as Option[] | undefined) ?? [];
  const groups: ChoiceGroup[] = (element.option_groups as OptionGroup[] | undefined)?.map((group) => ({
    label: group.label.text,
    choices: group.options.map(asChoice),
  })) ?? [{ choices: options.map(asChoice) }];
  const all = [
    ...options,
    ...((element.option_groups as OptionGroup[] | undefined) ?? []).flatMap((group) => group.options),
  ];
  const chosen = multiple ? (value.selected_options ?? []) : value.selected_option ? [value.selected_option] : [];

  const take = (choices: Choice[]): ElementValue => {
    const taken = choices.flatMap(
      (choice) => [...all, ...chosen].find((option) => option.value === choice.value) ?? [],
    );
    return multiple
      ? { type: element.type, selected_options: taken }
      : { type: element.type, selected_option: taken[0] ?? null };
  };
  return (
    <Pick
      {...props}
      groups={groups}
      chosen={chosen.map(asChoice)}
      fallback="Choose an option"
      onChoose={(choices) => void choose(take(choices))}
    />
  );
}

/** Selects that list the workspace's people or conversations. */
export function DirectorySelect(props: ElementProps) {
  const { element } = props;
  const directory = useDirectory();
  const { value, choose } = useElement(props);
  const multiple = element.type.startsWith('multi_');
  const noun = element.type.includes('user') ? 'user' : element.type.includes('channel') ? 'channel' : 'conversation';
  const field = multiple ? (`selected_${noun}s` as const) : (`selected_${noun}` as const);
  const choices = noun === 'user' ? people(directory) : conversations(directory, noun === 'channel', element);
  const held = value[field];
  const chosen = (Array.isArray(held) ? held : held ? [held] : []).map(
    (id) => choices.find((choice) => choice.value === id) ?? { value: id, label: id },
  );

  const take = (taken: Choice[]): ElementValue => ({
    type: element.type,
    [field]: multiple ? taken.map((choice) => choice.value) : (taken[0]?.value ?? null),
  });
  return (
    <Pick
      {...props}
      groups={[{ choices }]}
      chosen={chosen}
      fallback={`Select a ${noun === 'user' ? 'person' : noun}`}
      onChoose={(next) => void choose(take(next))}
    />
  );
}

/** The picker of a select element, with what all of them have in common. */
function Pick(
  props: ElementProps & {
    groups: ChoiceGroup[];
    chosen: Choice[];
    fallback: string;
    onChoose: (choices: Choice[]) => void;
  },
) {
  const { element } = props;
  const multiple = element.type.startsWith('multi_');
  return (
    <Picker
      groups={props.groups}
      chosen={props.chosen}
      multiple={multiple}
      max={element.max_selected_items as number | undefined}
      placeholder={(element.placeholder as TextObject | undefined)?.text ?? props.fallback}
      actionId={element.action_id}
      labelledBy={props.labelledBy}
      describedBy={props.describedBy}
      invalid={props.invalid}
      onChoose={props.onChoose}
    />
  );
}

function people(directory: Directory): Choice[] {
  return directory.workspace.users.map((user) => ({
    value: user.id,
    label: nameOf(user, user.id),
    hint: `@${user.name}`,
    icon: <Avatar user={user} name={nameOf(user, user.id)} size={20} />,
  }));
}

function conversations(directory: Directory, channelsOnly: boolean, element: Element): Choice[] {
  const include = (element.filter as { include?: string[] } | undefined)?.include;
  return visibleChannels(directory)
    .filter((channel) => {
      const kind = channel.is_im ? 'im' : channel.is_private ? 'private' : 'public';
      return channelsOnly ? kind === 'public' : !include || include.includes(kind);
    })
    .map((channel) => ({
      value: channel.id,
      label: channelName(channel, directory),
      icon: channel.is_im ? undefined : channel.is_private ? <Lock size={16} /> : <Hash size={16} />,
    }));
}
