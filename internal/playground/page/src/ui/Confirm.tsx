import { createContext, useCallback, useContext, useState, type ReactNode } from 'react';
import { PlainText } from '../blocks/TextObject';
import type { Confirm } from '../slack/types';
import { Mrkdwn } from '../text/Mrkdwn';
import { Dialog } from './Dialog';

type Ask = (confirm: Confirm) => Promise<boolean>;

const Context = createContext<Ask>(() => Promise.resolve(true));

/** Asks the person with a confirm object of Block Kit; false means no. */
export const useConfirm = () => useContext(Context);

export function ConfirmProvider({ children }: { children: ReactNode }) {
  const [open, setOpen] = useState<{ confirm: Confirm; answer: (yes: boolean) => void }>();
  const ask = useCallback<Ask>((confirm) => new Promise((answer) => setOpen({ confirm, answer })), []);
  const settle = (yes: boolean) => {
    open?.answer(yes);
    setOpen(undefined);
  };
  return (
    <Context value={ask}>
      {children}
      {open && (
        <Dialog
          title={<PlainText text={open.confirm.title} fallback="Are you sure?" />}
          className="dialog-small"
          testId="confirm"
          onClose={() => settle(false)}
          onSubmit={() => settle(true)}
          footer={
            <>
              <button type="button" className="button" onClick={() => settle(false)}>
                <PlainText text={open.confirm.deny} fallback="Cancel" />
              </button>
              <button
                type="submit"
                className={`button ${open.confirm.style === 'danger' ? 'danger' : 'primary'}`}
                data-autofocus
              >
                <PlainText text={open.confirm.confirm} fallback="Yes" />
              </button>
            </>
          }
        >
          {open.confirm.text && <Mrkdwn text={open.confirm.text.text} />}
        </Dialog>
      )}
    </Context>
  );
}
