import { useEffect, useId, useRef, type KeyboardEvent, type ReactNode } from 'react';
import { createPortal } from 'react-dom';
import { Back, Close } from './icons';

const focusable =
  'button:not(:disabled), input:not(:disabled), textarea:not(:disabled), select:not(:disabled), a[href], [tabindex="0"]';

/**
 * A modal dialog: it takes the focus, keeps Tab inside and gives the focus back.
 * Escape and the cross call onClose.
 */
export function Dialog(props: {
  title: ReactNode;
  onClose: () => void;
  children: ReactNode;
  footer: ReactNode;
  onBack?: () => void;
  onSubmit?: () => void;
  className?: string;
  testId?: string;
}) {
  const panel = useRef<HTMLFormElement>(null);
  const titleId = useId();

  useEffect(() => {
    const before = document.activeElement as HTMLElement | null;
    if (!panel.current?.contains(document.activeElement)) {
      const first =
        panel.current?.querySelector<HTMLElement>('[data-autofocus]') ??
        panel.current?.querySelector<HTMLElement>(
          `.dialog-body :is(input, textarea), .dialog-footer .primary, .dialog-footer .danger`,
        );
      (first ?? panel.current)?.focus();
    }
    return () => before?.focus();
  }, []);

  const keys = (event: KeyboardEvent) => {
    if (event.key === 'Escape') {
      event.stopPropagation();
      props.onClose();
      return;
    }
    if (event.key !== 'Tab' || !panel.current?.contains(event.target as Node)) return;
    const items = [...panel.current.querySelectorAll<HTMLElement>(focusable)].filter(
      (item) => item.offsetParent !== null,
    );
    const first = items[0];
    const last = items[items.length - 1];
    if (event.shiftKey ? document.activeElement === first : document.activeElement === last) {
      event.preventDefault();
      (event.shiftKey ? last : first)?.focus();
    }
  };

  return createPortal(
    <div className="scrim" onPointerDown={(event) => event.target === event.currentTarget && props.onClose()}>
      <form
        ref={panel}
        className={`dialog ${props.className ?? ''}`}
        role="dialog"
        aria-modal="true"
        aria-labelledby={titleId}
        tabIndex={-1}
        data-testid={props.testId}
        onKeyDown={keys}
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          props.onSubmit?.();
        }}
      >
        <header className="dialog-header">
          {props.onBack && (
            <button type="button" className="icon-button" aria-label="Back" onClick={props.onBack}>
              <Back />
            </button>
          )}
          <h2 id={titleId}>{props.title}</h2>
          <button type="button" className="icon-button" aria-label="Close" onClick={props.onClose}>
            <Close />
          </button>
        </header>
        <div className="dialog-body">{props.children}</div>
        <footer className="dialog-footer">{props.footer}</footer>
      </form>
    </div>,
    document.body,
  );
}
