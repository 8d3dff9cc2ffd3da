import { useEffect, useMemo, useState } from 'react';
import { Blocks } from '../blocks/Blocks';
import { SurfaceContext, type Surface } from '../elements/surface';
import { stateOf } from '../elements/values';
import { useActions } from '../shell/actions';
import { nameOf, useDirectory } from '../shell/directory';
import { useStore, useWorkspace } from '../shell/useWorkspace';
import type { StateValues } from '../slack/types';
import { Avatar } from '../ui/Avatar';

/** The app's home tab, as it has been published for the person at the page. */
export function HomeView() {
  const { me, bot } = useDirectory();
  const { act } = useActions();
  const { homes, link } = useWorkspace();
  const store = useStore();
  const [entered, setEntered] = useState<StateValues>({});
  const home = homes[me.id];

  useEffect(() => {
    if (link === 'live') void store.openHome(me.id);
  }, [store, me.id, link]);

  const surface = useMemo<Surface>(
    () => ({
      kind: 'home',
      values: entered,
      setValue: (block, action, value) =>
        setEntered((before) => ({ ...before, [block]: { ...before[block], [action]: value } })),
      act: (block, element, value) => {
        const now = { ...entered, [block]: { ...entered[block], [element.action_id ?? '']: value } };
        return act({ view_id: home?.id ?? '', entered: stateOf(home?.blocks ?? [], now) }, block, element, value);
      },
    }),
    [entered, act, home],
  );

  const name = nameOf(bot, 'The app');
  return (
    <section className="home" aria-label={`${name}'s home`} tabIndex={0}>
      <div className="home-inner">
        {home ? (
          <SurfaceContext value={surface}>
            <Blocks blocks={home.blocks} />
          </SurfaceContext>
        ) : (
          <div className="empty">
            <Avatar user={bot} name={name} size={56} />
            <h2>{name} has not published its home yet</h2>
            <p>It does when it hears that you opened this tab. If it is not running, this stays empty.</p>
          </div>
        )}
      </div>
    </section>
  );
}
