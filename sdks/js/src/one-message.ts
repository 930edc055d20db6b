/** One message: where it is, and taking it back. */

import { AdminCalls } from './admin.js';
import type { ChannelOption, MessageName, MessageNames, PeekOptions } from './admin-options.js';
import { requireCount, requireText, requireTexts, toUint64, UINT32_MAX } from './arguments.js';
import {
  FilaAdmin,
  type GetMessageResponse,
  GetMessageResponseSchema,
  PendingMessageSchema,
  type PendingMessage as WirePending,
} from './gen/fila/v1/admin_pb.js';
import { CancelMessagesResponseSchema, FilaService } from './gen/fila/v1/service_pb.js';
import { type Plain, plain } from './plain.js';
import { known, requireNames } from './request-fields.js';

/** Where one message is, and what it waits for. */
export interface MessageStatus extends Plain<GetMessageResponse> {}
/** One message that is not done, without its headers and payload. */
export interface PendingMessage extends Plain<WirePending> {}
/** What a cancel did to one message. */
export type CancelOutcome = 'cancelled' | 'revoked' | 'not_found' | 'unspecified';

const { method } = FilaAdmin;

/** The calls about single messages, as methods of a client. */
export abstract class MessageCalls extends AdminCalls {
  /**
   * Where one message is, by its id or its dedup key: it waits, is delayed or leased, failed, is dead, or is not
   * known any more. Rejects with QueueNotFound, ChannelNotFound, Invalid.
   */
  async getMessage(queue: string, message: MessageName, options: ChannelOption = {}): Promise<MessageStatus> {
    const { channel = '' } = options;
    requireNames(queue, channel);
    const { messageId = '', dedupKey = '' } = typeof message === 'string' ? { messageId: message } : message;
    requireText('messageId', messageId);
    requireText('dedupKey', dedupKey);
    const request = { queue, channel, messageId, dedupKey };
    return plain(
      GetMessageResponseSchema,
      await this.ask(method.getMessage, request, known(queue, channel), options),
    );
  }

  /**
   * Lists messages that are not done, in offset order (default 100): what each is doing and since when, without
   * headers and payload. The right `view` is enough. Rejects with QueueNotFound, ChannelNotFound.
   */
  async listPending(queue: string, options: PeekOptions = {}): Promise<PendingMessage[]> {
    const { maxMessages = 100, afterOffset = 0, fairnessKey = '', channel = '' } = options;
    requireNames(queue, channel);
    requireCount('maxMessages', maxMessages, UINT32_MAX);
    requireText('fairnessKey', fairnessKey);
    const after = toUint64('afterOffset', afterOffset);
    const request = { queue, channel, maxMessages, afterOffset: after, fairnessKey };
    const { messages } = await this.ask(method.listPending, request, known(queue, channel), options);
    return messages.map((message) => plain(PendingMessageSchema, message));
  }

  /**
   * Takes messages back that are not done, at most 10,000 a call, by their ids or their dedup keys. What became of
   * each, ids first: `cancelled`, `revoked` (a consumer had it, whose ack is refused from now on) or `not_found`.
   * Rejects with QueueNotFound, ChannelNotFound, Invalid.
   */
  async cancelMessages(
    queue: string,
    messages: readonly string[] | MessageNames,
    options: ChannelOption = {},
  ): Promise<readonly CancelOutcome[]> {
    const { channel = '' } = options;
    requireNames(queue, channel);
    const { messageIds = [], dedupKeys = [] } = 'length' in messages ? { messageIds: messages } : messages;
    requireTexts('messageIds', messageIds);
    requireTexts('dedupKeys', dedupKeys);
    const request = { queue, channel, messageIds: [...messageIds], dedupKeys: [...dedupKeys] };
    const answer = await this.ask(FilaService.method.cancelMessages, request, known(queue, channel), options);
    return plain(CancelMessagesResponseSchema, answer).outcomes;
  }
}
