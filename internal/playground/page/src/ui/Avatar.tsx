import { useState } from 'react';
import type { User } from '../slack/types';
import { localSrc } from '../text/links';

/** A person's picture, or the first letters of the name on a colour of its own. */
export function Avatar(props: { user?: User; name: string; size: number }) {
  const { user, name, size } = props;
  const src = localSrc(user?.image, location);
  const [broken, setBroken] = useState<string>();
  const box = { width: size, height: size, borderRadius: Math.round(size / 5) };
  if (src && src !== broken)
    return <img className="avatar" src={src} alt="" style={box} onError={() => setBroken(src)} />;
  const letters = name
    .split(/\s+/)
    .filter(Boolean)
    .map((word) => [...word][0])
    .slice(0, 2)
    .join('')
    .toUpperCase();
  return (
    <span
      className="avatar"
      aria-hidden="true"
      style={{ ...box, fontSize: size * 0.42, background: `hsl(${hue(user?.id ?? name)} 38% 42%)` }}
    >
      {letters}
    </span>
  );
}

function hue(key: string): number {
  let hash = 7;
  for (const char of key) hash = (hash * 31 + char.charCodeAt(0)) % 360;
  return hash;
}
