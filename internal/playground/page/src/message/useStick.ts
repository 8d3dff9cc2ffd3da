import { useCallback, useEffect, useLayoutEffect, useRef, useState, type RefObject } from 'react';

/** Closer to the end than this counts as being there. */
const near = 40;

/**
 * Keeps a scroller at its end while its content grows, but only if that is
 * where the reader was. A new `place` begins at the end.
 */
export function useStick(place: string): {
  scroller: RefObject<HTMLDivElement | null>;
  content: RefObject<HTMLDivElement | null>;
  away: boolean;
  toEnd: () => void;
} {
  const scroller = useRef<HTMLDivElement>(null);
  const content = useRef<HTMLDivElement>(null);
  const stuck = useRef(true);
  const [away, setAway] = useState(false);

  const toEnd = useCallback(() => {
    stuck.current = true;
    setAway(false);
    if (scroller.current) scroller.current.scrollTop = scroller.current.scrollHeight;
  }, []);

  useLayoutEffect(toEnd, [place, toEnd]);

  useEffect(() => {
    const box = scroller.current;
    if (!box || !content.current) return;
    let top = box.scrollTop;
    const scrolled = () => {
      // Only a reader moves upwards. That the end has moved away is growth, which is followed below.
      if (box.scrollHeight - box.scrollTop - box.clientHeight < near) stuck.current = true;
      else if (box.scrollTop < top) stuck.current = false;
      top = box.scrollTop;
      setAway(!stuck.current);
    };
    const grown = new ResizeObserver(() => {
      if (stuck.current) box.scrollTop = box.scrollHeight;
    });
    grown.observe(content.current);
    grown.observe(box);
    box.addEventListener('scroll', scrolled, { passive: true });
    return () => {
      grown.disconnect();
      box.removeEventListener('scroll', scrolled);
    };
  }, [place]);

  return { scroller, content, away, toEnd };
}
