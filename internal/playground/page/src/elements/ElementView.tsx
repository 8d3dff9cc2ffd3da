import { BlockImage } from '../blocks/Image';
import { ButtonElement, FeedbackButtons, IconButton } from './Button';
import { Choices } from './Choices';
import { DateElement } from './Dates';
import { Overflow } from './Overflow';
import { DirectorySelect, OptionSelect } from './Select';
import type { ElementProps } from './surface';
import { TextInput } from './TextInput';

/** An element of any type. */
export function ElementView(props: ElementProps) {
  const { type } = props.element;
  switch (type) {
    case 'button':
    case 'workflow_button':
      return <ButtonElement {...props} />;
    case 'icon_button':
      return <IconButton {...props} />;
    case 'feedback_buttons':
      return <FeedbackButtons {...props} />;
    case 'overflow':
      return <Overflow {...props} />;
    case 'static_select':
    case 'external_select':
    case 'multi_static_select':
    case 'multi_external_select':
      return <OptionSelect {...props} />;
    case 'users_select':
    case 'channels_select':
    case 'conversations_select':
    case 'multi_users_select':
    case 'multi_channels_select':
    case 'multi_conversations_select':
      return <DirectorySelect {...props} />;
    case 'radio_buttons':
    case 'checkboxes':
      return <Choices {...props} />;
    case 'datepicker':
    case 'timepicker':
    case 'datetimepicker':
      return <DateElement {...props} />;
    case 'plain_text_input':
    case 'email_text_input':
    case 'url_text_input':
    case 'number_input':
    case 'rich_text_input':
      return <TextInput {...props} />;
    case 'image':
      return <BlockImage source={props.element} size="thumb" />;
    default:
      return <span className="unknown">The playground does not draw “{type}” elements.</span>;
  }
}
