/** The protocols that a link may have. Anything else is shown as text. */
const allowed = new Set(['http:', 'https:', 'mailto:', 'tel:']);

/** The address if it is safe to link to, or undefined. */
export function safeHref(href: string): string | undefined {
  try {
    return allowed.has(new URL(href).protocol) ? href : undefined;
  } catch {
    return undefined;
  }
}

const loopback = new Set(['localhost', '127.0.0.1', '[::1]']);

/**
 * The address under which an image or file can be loaded without leaving this
 * machine, or undefined: a path, a data: or blob: address, or our own origin
 * by any of its loopback names.
 */
export function localSrc(
  src: string | undefined,
  here: { hostname: string; port: string; origin: string },
): string | undefined {
  if (!src) return undefined;
  if (/^data:image\//i.test(src) || src.startsWith('blob:')) return src;
  let url: URL;
  try {
    url = new URL(src, here.origin);
  } catch {
    return undefined;
  }
  const same =
    url.origin === here.origin || (loopback.has(url.hostname) && loopback.has(here.hostname) && url.port === here.port);
  return same && /^https?:$/.test(url.protocol) ? url.pathname + url.search : undefined;
}
