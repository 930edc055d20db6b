/** A broker that does what a test says: real gRPC on a real port, and no queue behind it. */

import type {
  DescMessage,
  DescMethod,
  DescService,
  MessageInitShape,
  MessageShape,
} from '@bufbuild/protobuf';
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { anyPack } from '@bufbuild/protobuf/wkt';
import {
  Metadata,
  Server,
  ServerCredentials,
  type ServerDuplexStream,
  type ServerErrorResponse,
  status,
  type UntypedHandleCall,
} from '@grpc/grpc-js';

import { FilaAdmin } from '../src/gen/fila/v1/admin_pb.js';
import { ItemStatusSchema, type Message, MessageSchema } from '../src/gen/fila/v1/messages_pb.js';
import {
  type ConsumeSessionRequest,
  type ConsumeSessionResponse,
  ConsumeSessionResponseSchema,
  type EnqueueMessage,
  type EnqueueResult,
  EnqueueResultSchema,
  type EnqueueStreamRequest,
  type EnqueueStreamResponse,
  FilaService,
} from '../src/gen/fila/v1/service_pb.js';
import { ErrorInfoSchema, RetryInfoSchema, StatusSchema } from '../src/gen/google/rpc_pb.js';
import { toTimestamp } from '../src/times.js';

type Frame = ConsumeSessionRequest['request'];
type Word = Exclude<Frame['case'], undefined>;
type Said<W extends Word> = Extract<Frame, { case: W }>['value'];

/** Resolves when `look` gives something, which it is asked whenever `changed` is called. */
class Watch {
  readonly #lookers = new Set<() => void>();

  changed(): void {
    for (const look of [...this.#lookers]) look();
  }

  until<T>(look: () => T | undefined): Promise<T> {
    return new Promise((resolve) => {
      const again = () => {
        const found = look();
        if (found === undefined) return;
        this.#lookers.delete(again);
        resolve(found);
      };
      this.#lookers.add(again);
      again();
    });
  }
}

/** One consumer's stream, seen from the broker. */
export class FakeSession {
  readonly frames: Frame[] = [];
  readonly watch = new Watch();
  ended = false;
  readonly #stream: ServerDuplexStream<ConsumeSessionRequest, ConsumeSessionResponse>;

  constructor(stream: ServerDuplexStream<ConsumeSessionRequest, ConsumeSessionResponse>) {
    this.#stream = stream;
    stream.on('data', ({ request }: ConsumeSessionRequest) => {
      this.frames.push(request);
      if (request.case === 'close') stream.end();
      this.watch.changed();
    });
    stream.on('error', () => {});
    for (const event of ['end', 'cancelled', 'close']) {
      stream.on(event, () => {
        this.ended = true;
        this.watch.changed();
      });
    }
  }

  say(response: MessageInitShape<typeof ConsumeSessionResponseSchema>['response']): void {
    this.#stream.write(create(ConsumeSessionResponseSchema, { response } as never));
  }

  /** Answers the open frame. */
  async opened(rules: { timeoutMs?: number; consumerId?: bigint; lost?: bigint[]; renewalMs?: number } = {}) {
    const open = await this.heard('open');
    const { timeoutMs = 30_000, consumerId = 7n, lost = [], renewalMs = 600_000 } = rules;
    this.say({
      case: 'opened',
      value: {
        $typeName: 'fila.v1.ConsumeSessionResponse.Opened',
        consumerId,
        visibilityTimeoutMs: BigInt(timeoutMs),
        disconnectGraceMs: 5_000n,
        maxLeaseRenewalMs: BigInt(renewalMs),
        lostLeaseIds: lost,
      },
    });
    return open;
  }

  deliver(...messages: Message[]): void {
    this.say({ case: 'delivery', value: { $typeName: 'fila.v1.ConsumeSessionResponse.Delivery', messages } });
  }

  revoke(reason: string, ...leaseIds: bigint[]): void {
    this.say({
      case: 'revoked',
      value: { $typeName: 'fila.v1.ConsumeSessionResponse.Revoked', leaseIds, reason },
    });
  }

  /** Answers acks and nacks, refusing the leases given. */
  settle(sequence: bigint, refused: Record<string, string> = {}): void {
    const failures = Object.entries(refused).map(([leaseId, reason]) => ({
      $typeName: 'fila.v1.ConsumeSessionResponse.Failure' as const,
      leaseId: BigInt(leaseId),
      status: refusal(status.FAILED_PRECONDITION, reason),
    }));
    this.say({
      case: 'settled',
      value: { $typeName: 'fila.v1.ConsumeSessionResponse.Settled', sequence, failures },
    });
  }

  /** Answers every ack and nack from now on, those that came already too. */
  settleAll(): void {
    const answered = new Set<bigint>();
    void this.watch.until(() => {
      for (const word of [...this.all('ack'), ...this.all('nack')]) {
        if (answered.has(word.sequence)) continue;
        answered.add(word.sequence);
        this.settle(word.sequence);
      }
      return undefined;
    });
  }

  all<W extends Word>(word: W): Said<W>[] {
    return this.frames.filter((frame) => frame.case === word).map((frame) => frame.value as Said<W>);
  }

  /** Resolves with the `index`-th frame of a kind. */
  heard<W extends Word>(word: W, index = 0): Promise<Said<W>> {
    return this.watch.until(() => this.all(word)[index]);
  }

  over(): Promise<true> {
    return this.watch.until(() => this.ended || undefined);
  }

  /** Ends the stream with an error. */
  fail(code: status, reason = '', told: Record<string, string> = {}): void {
    this.#stream.emit('error', failure(code, reason, undefined, told));
  }
}

type Handle = (request: never, metadata: Metadata) => object | Promise<object>;

/** The fake. */
export class FakeBroker {
  address = '';
  /** Called with each frame of enqueues; answers it, now or later. */
  onFrame: (frame: EnqueueStreamRequest, answer: (results?: EnqueueResult[]) => void) => void = (_, answer) =>
    answer();
  /** With what streams of enqueues end as soon as they bring something. */
  streamFailure: Partial<ServerErrorResponse> | undefined;
  readonly frames: EnqueueStreamRequest[] = [];
  readonly enqueued: EnqueueMessage[] = [];
  readonly sessions: FakeSession[] = [];
  readonly calls: { readonly name: string; readonly metadata: Metadata; readonly request: never }[] = [];
  readonly watch = new Watch();
  readonly #handles = new Map<string, Handle>();
  readonly #credentials: ServerCredentials;
  #server = new Server();
  #offset = 0n;

  constructor(credentials = ServerCredentials.createInsecure()) {
    this.#credentials = credentials;
  }

  static async start(credentials?: ServerCredentials): Promise<FakeBroker> {
    const broker = new FakeBroker(credentials);
    await broker.listen();
    return broker;
  }

  async listen(address = ''): Promise<void> {
    for (;;) {
      // Below the ports that the kernel gives to connections: none of them takes it while this broker is down.
      this.address = address || `127.0.0.1:${10_000 + Math.floor(Math.random() * 22_768)}`;
      this.#server = new Server();
      for (const service of [FilaService, FilaAdmin])
        this.#server.addService(definition(service), this.#handlers(service));
      const failed = await new Promise<Error | null>((resolve) => {
        this.#server.bindAsync(this.address, this.#credentials, resolve);
      });
      if (!failed) return;
      if (address) throw failed;
    }
  }

  /** Breaks every connection, as `kill -9` does. */
  kill(): void {
    this.#server.forceShutdown();
  }

  restart(): Promise<void> {
    return this.listen(this.address);
  }

  /** Says how a unary call is answered; what it throws is the call's error. */
  on<I extends DescMessage, O extends DescMessage>(
    method: DescMethod & { input: I; output: O },
    handle: (
      request: MessageShape<I>,
      metadata: Metadata,
    ) => MessageInitShape<O> | Promise<MessageInitShape<O>>,
  ): void {
    this.#handles.set(method.name, handle);
  }

  session(index = 0): Promise<FakeSession> {
    return this.watch.until(() => this.sessions[index]);
  }

  /** Resolves with the `index`-th frame of enqueues. */
  frame(index: number): Promise<EnqueueStreamRequest> {
    return this.watch.until(() => this.frames[index]);
  }

  stored(): EnqueueResult {
    const offset = ++this.#offset;
    return create(EnqueueResultSchema, { messageId: `id-${offset}`, offset });
  }

  #handlers(service: DescService): Record<string, UntypedHandleCall> {
    const handlers: Record<string, UntypedHandleCall> = {};
    for (const method of service.methods) handlers[method.localName] = this.#unary(method);
    if (service.typeName === FilaService.typeName) {
      handlers['enqueueStream'] = ((
        stream: ServerDuplexStream<EnqueueStreamRequest, EnqueueStreamResponse>,
      ) => {
        this.#enqueueStream(stream);
      }) as UntypedHandleCall;
      handlers['consumeSession'] = ((
        stream: ServerDuplexStream<ConsumeSessionRequest, ConsumeSessionResponse>,
      ) => {
        this.sessions.push(new FakeSession(stream));
        this.watch.changed();
      }) as UntypedHandleCall;
    }
    return handlers;
  }

  #unary(method: DescMethod): UntypedHandleCall {
    const call = async (
      { request, metadata }: { request: never; metadata: Metadata },
      reply: (error: Partial<ServerErrorResponse> | null, answer?: unknown) => void,
    ) => {
      this.calls.push({ name: method.name, metadata, request });
      const handle = this.#handles.get(method.name);
      try {
        if (handle === undefined) reply(failure(status.UNIMPLEMENTED, ''));
        else reply(null, create(method.output, (await handle(request, metadata)) as never));
      } catch (error) {
        reply(error as Partial<ServerErrorResponse>);
      }
    };
    return call as unknown as UntypedHandleCall;
  }

  #enqueueStream(stream: ServerDuplexStream<EnqueueStreamRequest, EnqueueStreamResponse>): void {
    stream.on('error', () => {});
    stream.on('end', () => stream.end());
    stream.on('data', (frame: EnqueueStreamRequest) => {
      this.frames.push(frame);
      if (this.streamFailure !== undefined) {
        stream.emit('error', this.streamFailure);
        return;
      }
      const messages = frame.batch?.messages ?? [];
      this.onFrame(frame, (results = messages.map(() => this.stored())) => {
        this.enqueued.push(...messages);
        stream.write({ $typeName: 'fila.v1.EnqueueStreamResponse', sequence: frame.sequence, results });
        this.watch.changed();
      });
      this.watch.changed();
    });
  }
}

/** An item's refusal. */
export function refusal(code: status, reason: string) {
  return create(ItemStatusSchema, { code, message: `refused: ${reason}`, reason });
}

/** A refused message of a frame. */
export function refused(code: status, reason: string): EnqueueResult {
  return create(EnqueueResultSchema, { error: refusal(code, reason) });
}

/** A call's refusal, with the details that a broker sends. */
export function failure(
  code: status,
  reason: string,
  retryAfterMs?: number,
  told: Record<string, string> = {},
): Partial<ServerErrorResponse> {
  const metadata = new Metadata();
  if (reason !== '') {
    const details = [
      anyPack(ErrorInfoSchema, create(ErrorInfoSchema, { reason, domain: 'fila', metadata: told })),
    ];
    if (retryAfterMs !== undefined) {
      const retryDelay = { seconds: 0n, nanos: retryAfterMs * 1e6 };
      details.push(anyPack(RetryInfoSchema, create(RetryInfoSchema, { retryDelay })));
    }
    const encoded = toBinary(StatusSchema, create(StatusSchema, { code, details }));
    metadata.set('grpc-status-details-bin', Buffer.from(encoded));
  }
  return { code, details: `refused: ${reason}`, metadata };
}

/** A delivery. */
export function delivery(
  leaseId: bigint,
  fields: { id?: string; redelivered?: boolean; cameBack?: boolean; payload?: string } = {},
): Message {
  const { id = `message-${leaseId}`, payload = `payload ${leaseId}` } = fields;
  const { redelivered = false, cameBack = false } = fields;
  const leasedAt = toTimestamp(new Date(1_000_000));
  return create(MessageSchema, {
    id,
    payload: Buffer.from(payload),
    metadata: {
      queueId: 'q',
      channel: 'default',
      leaseId,
      offset: leaseId,
      redelivered,
      cameBack,
      fairnessKey: 'default',
    },
    timestamps: { leasedAt, leaseExpiresAt: toTimestamp(new Date(1_030_000)) },
  });
}

function definition(service: DescService) {
  return Object.fromEntries(
    service.methods.map((method) => [
      method.localName,
      {
        path: `/${service.typeName}/${method.name}`,
        requestStream: method.methodKind === 'client_streaming' || method.methodKind === 'bidi_streaming',
        responseStream: method.methodKind === 'server_streaming' || method.methodKind === 'bidi_streaming',
        requestSerialize: (message: object) => Buffer.from(toBinary(method.input, message as never)),
        requestDeserialize: (bytes: Buffer) => fromBinary(method.input, bytes),
        responseSerialize: (message: object) => Buffer.from(toBinary(method.output, message as never)),
        responseDeserialize: (bytes: Buffer) => fromBinary(method.output, bytes),
      },
    ]),
  );
}
