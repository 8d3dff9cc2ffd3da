import type { Channel } from '../slack/types';
import { Hash, Lock, Shared } from '../ui/icons';

/** What kind of conversation this is: public, private, or shared with another company. */
export function ChannelIcon({ channel, size }: { channel: Channel; size?: number }) {
  if (channel.is_private) return <Lock size={size} />;
  if (channel.is_ext_shared) return <Shared size={size} />;
  return <Hash size={size} />;
}
