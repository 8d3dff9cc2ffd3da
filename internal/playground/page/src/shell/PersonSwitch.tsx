import { useRef, useState } from 'react';
import type { User } from '../slack/types';
import { Avatar } from '../ui/Avatar';
import { Check, Chevron, NewWindow } from '../ui/icons';
import { Menu } from '../ui/Menu';
import { nameOf, useDirectory } from './directory';
import { formatRoute, type Route } from './route';

/** What a person is here, in a few words. */
export function roleOf(user: User, groupNames: string[]): string {
  if (user.title) return user.title;
  if (user.stranger) return 'from another company';
  if (user.guest) return 'guest';
  return groupNames.length > 0 ? groupNames.join(', ') : 'no role';
}

/** Everybody that one can be. A window of its own for each makes a conversation. */
export function PersonSwitch(props: { route: Route; onPerson: (id: string) => void }) {
  const { me, users, groups } = useDirectory();
  const anchor = useRef<HTMLButtonElement>(null);
  const [open, setOpen] = useState(false);
  const role = (user: User) =>
    roleOf(
      user,
      (user.groups ?? []).map((id) => groups.get(id)?.handle ?? id),
    );
  const people = [...users.values()].filter((user) => !user.bot);
  return (
    <div className="person">
      <button
        ref={anchor}
        type="button"
        className="person-button"
        data-testid="person-switch"
        data-user={me.id}
        aria-haspopup="menu"
        aria-expanded={open}
        aria-label={`You are ${nameOf(me, me.id)}. Be somebody else.`}
        onClick={() => setOpen(!open)}
      >
        <Avatar user={me} name={nameOf(me, me.id)} size={32} />
        <span className="person-text">
          <small>You are</small> <b>{nameOf(me, me.id)}</b>
        </span>
        <Chevron size={16} />
      </button>
      {open && (
        <Menu anchor={anchor} label="Be somebody else" className="person-menu" onClose={() => setOpen(false)}>
          <div className="menu-title" role="presentation" aria-hidden="true">
            Be somebody else
          </div>
          {people.map((user) => (
            <div key={user.id} className="person-row" role="none">
              <button
                type="button"
                role="menuitemradio"
                aria-checked={user.id === me.id}
                className="menu-item"
                data-person={user.id}
                onClick={() => {
                  setOpen(false);
                  props.onPerson(user.id);
                }}
              >
                <Avatar user={user} name={nameOf(user, user.id)} size={28} />
                <span className="person-text">
                  <b>{nameOf(user, user.id)}</b>
                  <small>{role(user)}</small>
                </span>
                {user.id === me.id && <Check size={16} />}
              </button>
              <a
                className="icon-button"
                role="menuitem"
                tabIndex={-1}
                data-beside
                href={location.pathname + formatRoute({ ...props.route, user: user.id })}
                target="_blank"
                rel="noopener"
                title={`A window as ${nameOf(user, user.id)}`}
                aria-label={`Open a window as ${nameOf(user, user.id)}`}
              >
                <NewWindow size={16} />
              </a>
            </div>
          ))}
        </Menu>
      )}
    </div>
  );
}
