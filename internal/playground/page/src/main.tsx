import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { App } from './App';
import { watchSigns } from './text/signs';
import './styles/tokens.css';
import './styles/base.css';
import './styles/shell.css';
import './styles/message.css';
import './styles/blocks.css';
import './styles/elements.css';
import './styles/ui.css';
import './styles/notifications.css';

const root = document.getElementById('root');
if (!root) throw new Error('index.html has no #root');
watchSigns(document.body);
createRoot(root).render(
  <StrictMode>
    <App />
  </StrictMode>,
);
