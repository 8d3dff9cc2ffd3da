import { Alert, Close, Info } from '../ui/icons';
import { useStore, useWorkspace } from './useWorkspace';

export function Toasts() {
  const { toasts } = useWorkspace();
  const store = useStore();
  return (
    <div className="toasts" role="status" aria-live="polite">
      {toasts.map((toast) => (
        <div key={toast.id} className={`toast ${toast.tone}`}>
          {toast.tone === 'warning' ? <Alert /> : <Info />}
          <span>{toast.text}</span>
          <button type="button" className="icon-button" aria-label="Dismiss" onClick={() => store.dismiss(toast.id)}>
            <Close size={15} />
          </button>
        </div>
      ))}
    </div>
  );
}
