import { emojiName } from './emoji';

/*
 * A machine without a font for emoji draws boxes. There the signs become words: ✅ is [done].
 */

const words: Record<string, string> = {
  '✅': 'done',
  '❌': 'failed',
  '🚫': 'denied',
  '✋': 'waiting',
  '⏳': 'working',
  '⌛': 'expired',
  '⏹': 'stopped',
  '⏸': 'paused',
  '⛔': 'used up',
  '⚠': 'warning',
  '💸': 'budget',
  '💭': 'thinking',
  '🕒': 'queued',
  '👀': 'seen',
};

const sign = /\p{Emoji_Presentation}|\p{Extended_Pictographic}\uFE0F?/gu;

/** The text with each sign as words that no font has. */
export function inWords(text: string, lacks: (sign: string) => boolean): string {
  return text.replace(sign, (found) => {
    const char = found.replace('\uFE0F', '');
    return lacks(char) ? `[${words[char] ?? emojiName(char)?.replaceAll('_', ' ') ?? '?'}]` : found;
  });
}

/** Whether no font of this machine has a character: it looks like one that nobody has. */
function drawer(): (char: string) => boolean {
  const canvas = document.createElement('canvas');
  canvas.width = canvas.height = 32;
  const context = canvas.getContext('2d', { willReadFrequently: true });
  const known = new Map<string, boolean>();
  const draw = (char: string) => {
    context!.clearRect(0, 0, 32, 32);
    context!.font = '24px sans-serif';
    context!.fillText(char, 2, 26);
    return context!.getImageData(0, 0, 32, 32).data.join();
  };
  const nobodys = context ? draw('\u{10FFFD}') : '';
  return (char) => {
    if (!context) return false;
    const before = known.get(char);
    if (before !== undefined) return before;
    const missing = draw(char) === nobodys;
    known.set(char, missing);
    return missing;
  };
}

/** Keeps what the page shows readable, as it changes. Only the characters of texts change, so React need not know. */
export function watchSigns(root: Node): void {
  const lacks = drawer();
  if (!Object.keys(words).some(lacks)) return; // there is a font; some fonts without emoji have 😀
  const mend = (node: Node) => {
    if (node.nodeType === Node.TEXT_NODE) {
      const text = inWords(node.nodeValue ?? '', lacks);
      if (text !== node.nodeValue) node.nodeValue = text;
      return;
    }
    for (let child = node.firstChild; child; child = child.nextSibling) mend(child);
  };
  mend(root);
  new MutationObserver((changes) => {
    for (const change of changes) {
      if (change.type === 'characterData') mend(change.target);
      else change.addedNodes.forEach(mend);
    }
  }).observe(root, { subtree: true, childList: true, characterData: true });
}
