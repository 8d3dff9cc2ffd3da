import type { ReactNode } from 'react';

/** Line icons on a 20-unit grid, drawn in the text's colour. */
function Icon(props: { children: ReactNode; size?: number }) {
  const size = props.size ?? 18;
  return (
    <svg
      className="icon"
      width={size}
      height={size}
      viewBox="0 0 20 20"
      fill="none"
      stroke="currentColor"
      strokeWidth="1.6"
      strokeLinecap="round"
      strokeLinejoin="round"
      aria-hidden="true"
    >
      {props.children}
    </svg>
  );
}

export type IconProps = { size?: number };

export const Hash = (p: IconProps) => (
  <Icon {...p}>
    <path d="M7.8 3.5 6.3 16.5M13.7 3.5l-1.5 13M3.7 7.5h13.1M3.2 12.5h13.1" />
  </Icon>
);
export const Lock = (p: IconProps) => (
  <Icon {...p}>
    <rect x="4.5" y="9" width="11" height="8" rx="2" />
    <path d="M7 9V6.5a3 3 0 0 1 6 0V9" />
  </Icon>
);
export const Shared = (p: IconProps) => (
  <Icon {...p}>
    <circle cx="7" cy="10" r="4.2" />
    <circle cx="13" cy="10" r="4.2" />
  </Icon>
);
export const Close = (p: IconProps) => (
  <Icon {...p}>
    <path d="m5 5 10 10M15 5 5 15" />
  </Icon>
);
export const Back = (p: IconProps) => (
  <Icon {...p}>
    <path d="M12.5 4.5 7 10l5.5 5.5" />
  </Icon>
);
export const Chevron = (p: IconProps) => (
  <Icon {...p}>
    <path d="m5.5 8 4.5 4.5L14.5 8" />
  </Icon>
);
export const Send = (p: IconProps) => (
  <Icon {...p}>
    <path d="M3.5 16.5 17 10 3.5 3.5 5.5 10zM5.5 10H11" fill="currentColor" fillOpacity=".15" />
  </Icon>
);
export const Clip = (p: IconProps) => (
  <Icon {...p}>
    <path d="m15.5 9.5-5.6 5.6a3.4 3.4 0 0 1-4.8-4.8l6-6a2.3 2.3 0 0 1 3.2 3.2l-5.9 5.9a1.1 1.1 0 0 1-1.6-1.6l5.2-5.2" />
  </Icon>
);
export const At = (p: IconProps) => (
  <Icon {...p}>
    <circle cx="10" cy="10" r="2.8" />
    <path d="M12.8 7.2v3.6a2 2 0 0 0 4 0V10a6.8 6.8 0 1 0-2.7 5.4" />
  </Icon>
);
export const Smile = (p: IconProps) => (
  <Icon {...p}>
    <circle cx="10" cy="10" r="7" />
    <path d="M7 11.8a3.4 3.4 0 0 0 6 0M7.6 7.8h.01M12.4 7.8h.01" />
  </Icon>
);
export const Reply = (p: IconProps) => (
  <Icon {...p}>
    <path d="M4 4.5h12a1 1 0 0 1 1 1v7a1 1 0 0 1-1 1h-5L7 16.8v-3.3H4a1 1 0 0 1-1-1v-7a1 1 0 0 1 1-1z" />
  </Icon>
);
export const LinkIcon = (p: IconProps) => (
  <Icon {...p}>
    <path d="M8.5 11.5a3 3 0 0 0 4.3 0l2.7-2.7a3 3 0 0 0-4.3-4.3L10 5.7M11.5 8.5a3 3 0 0 0-4.3 0l-2.7 2.7a3 3 0 0 0 4.3 4.3L10 14.3" />
  </Icon>
);
export const Sun = (p: IconProps) => (
  <Icon {...p}>
    <circle cx="10" cy="10" r="3.2" />
    <path d="M10 2.5v1.6M10 15.9v1.6M2.5 10h1.6M15.9 10h1.6M4.7 4.7l1.1 1.1M14.2 14.2l1.1 1.1M4.7 15.3l1.1-1.1M14.2 5.8l1.1-1.1" />
  </Icon>
);
export const Moon = (p: IconProps) => (
  <Icon {...p}>
    <path d="M16.5 11.8A6.8 6.8 0 0 1 8.2 3.5a6.8 6.8 0 1 0 8.3 8.3z" />
  </Icon>
);
export const Bolt = (p: IconProps) => (
  <Icon {...p}>
    <path d="M11 2.8 4.8 11.2h4.4L8.6 17.2l6.6-8.6h-4.6z" />
  </Icon>
);
export const Eye = (p: IconProps) => (
  <Icon {...p}>
    <path d="M2.5 10S5.2 5 10 5s7.5 5 7.5 5-2.7 5-7.5 5-7.5-5-7.5-5z" />
    <circle cx="10" cy="10" r="2.2" />
  </Icon>
);
export const Bell = (p: IconProps) => (
  <Icon {...p}>
    <path d="M5.5 13.5V9a4.5 4.5 0 0 1 9 0v4.5l1.5 1.8H4zM8.3 17.2h3.4" />
  </Icon>
);
export const Dots = (p: IconProps) => (
  <Icon {...p}>
    <path d="M4.8 10h.01M10 10h.01M15.2 10h.01" strokeWidth="2.6" />
  </Icon>
);
export const Check = (p: IconProps) => (
  <Icon {...p}>
    <path d="m4.5 10.5 3.7 3.7 7.3-8" />
  </Icon>
);
export const Alert = (p: IconProps) => (
  <Icon {...p}>
    <path d="M10 3.2 2.8 16h14.4zM10 8.2v3.6M10 14h.01" />
  </Icon>
);
export const Info = (p: IconProps) => (
  <Icon {...p}>
    <circle cx="10" cy="10" r="7" />
    <path d="M10 9.2v4.3M10 6.6h.01" />
  </Icon>
);
export const Doc = (p: IconProps) => (
  <Icon {...p}>
    <path d="M5.5 2.8h6l3.5 3.5v10.2a.8.8 0 0 1-.8.8H5.5a.8.8 0 0 1-.8-.8V3.6a.8.8 0 0 1 .8-.8zM11.3 2.8v3.7h3.7" />
  </Icon>
);
export const Download = (p: IconProps) => (
  <Icon {...p}>
    <path d="M10 3.5v9M6.3 9l3.7 3.7L13.7 9M4 16.5h12" />
  </Icon>
);
export const Menu = (p: IconProps) => (
  <Icon {...p}>
    <path d="M3.5 5.5h13M3.5 10h13M3.5 14.5h13" />
  </Icon>
);
export const Home = (p: IconProps) => (
  <Icon {...p}>
    <path d="M3.5 9.2 10 3.8l6.5 5.4M5.2 8v8.2h9.6V8" />
  </Icon>
);
export const NewWindow = (p: IconProps) => (
  <Icon {...p}>
    <path d="M11.5 3.5h5v5M16.2 3.8 9.5 10.5M8 4.5H4.5v11h11V12" />
  </Icon>
);
export const ThumbUp = (p: IconProps) => (
  <Icon {...p}>
    <path d="M6.5 9 9.3 3.5c1.2 0 1.9.9 1.7 2.2L10.6 8h4.2a1.5 1.5 0 0 1 1.5 1.8l-1 5a1.7 1.7 0 0 1-1.7 1.4H6.5zM6.5 9H3.7v7.2h2.8" />
  </Icon>
);
export const ThumbDown = (p: IconProps) => (
  <Icon {...p}>
    <path d="m6.5 11 2.8 5.5c1.2 0 1.9-.9 1.7-2.2L10.6 12h4.2a1.5 1.5 0 0 0 1.5-1.8l-1-5a1.7 1.7 0 0 0-1.7-1.4H6.5zM6.5 11H3.7V3.8h2.8" />
  </Icon>
);
export const Trash = (p: IconProps) => (
  <Icon {...p}>
    <path d="M3.8 5.8h12.4M8 5.5V3.8h4v1.7M5.3 5.8l.7 10.7h8l.7-10.7M8.5 9v4.5M11.5 9v4.5" />
  </Icon>
);
export const Pencil = (p: IconProps) => (
  <Icon {...p}>
    <path d="M4 16l.7-3.2 8.8-8.8 2.5 2.5-8.8 8.8zM12 5.5l2.5 2.5" />
  </Icon>
);
export const Bold = (p: IconProps) => (
  <Icon {...p}>
    <path d="M6 4h4.5a3 3 0 0 1 0 6H6zM6 10h5.2a3 3 0 0 1 0 6H6z" strokeWidth="2" />
  </Icon>
);
export const Italic = (p: IconProps) => (
  <Icon {...p}>
    <path d="M8.5 4h5M6.5 16h5M11.3 4 8.7 16" />
  </Icon>
);
export const Strike = (p: IconProps) => (
  <Icon {...p}>
    <path d="M3.5 10h13M13.5 6.5C13 5 11.7 4 10 4 8 4 6.5 5 6.5 6.8c0 .8.3 1.5.8 2M6.3 13.3C6.7 15 8 16 10 16c2.1 0 3.7-1.1 3.7-2.9 0-.4-.1-.8-.2-1.1" />
  </Icon>
);
export const Code = (p: IconProps) => (
  <Icon {...p}>
    <path d="m7 6-4 4 4 4M13 6l4 4-4 4" />
  </Icon>
);
export const CodeBlock = (p: IconProps) => (
  <Icon {...p}>
    <rect x="2.8" y="3.8" width="14.4" height="12.4" rx="2" />
    <path d="m8 8-2.2 2L8 12M12 8l2.2 2L12 12" />
  </Icon>
);

/** The house's own mark: an anchor. */
export function Mark(props: { size?: number }) {
  const size = props.size ?? 28;
  return (
    <svg width={size} height={size} viewBox="0 0 32 32" aria-hidden="true">
      <rect width="32" height="32" rx="8" className="mark-tile" />
      <g fill="none" stroke="#fff" strokeWidth="2.4" strokeLinecap="round" strokeLinejoin="round">
        <circle cx="16" cy="8.6" r="2.6" />
        <path d="M16 11.2V25M11 15h10M7.5 17.5c0 4.6 3.6 7.5 8.5 7.5s8.5-2.9 8.5-7.5" />
      </g>
    </svg>
  );
}
