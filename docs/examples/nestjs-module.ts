// A NestJS module: a client, queues that are injected by name, a service that adds, and a worker that begins and ends with
// the application. Each `@Inject` names its token: tools such as esbuild write no metadata to guess it from.
import 'reflect-metadata'
import assert from 'node:assert/strict'
import {
  Inject,
  Injectable,
  Module,
  type BeforeApplicationShutdown,
  type DynamicModule,
  type OnApplicationBootstrap,
  type OnApplicationShutdown,
  type Provider,
} from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import {
  ShutdownError,
  createClient,
  type ClientOptions,
  type RedelayedClient,
  type ReliableQueue,
  type Worker,
} from 'redelayed'
import { log, uniqueName, until, url } from './support.js'

const CLIENT = Symbol('redelayed client')
const tokenOf = (queue: string): string => `redelayed queue ${queue}`
const InjectClient = (): ParameterDecorator => Inject(CLIENT)
const InjectQueue = (queue: string): ParameterDecorator => Inject(tokenOf(queue))

interface RedelayedModuleOptions extends ClientOptions {
  readonly queues: readonly string[]
}

@Module({})
class RedelayedModule implements OnApplicationShutdown {
  constructor(@InjectClient() private readonly client: RedelayedClient) {}

  static forRoot({ queues, ...options }: RedelayedModuleOptions): DynamicModule {
    const providers: Provider[] = [
      {
        provide: CLIENT,
        useFactory: () => createClient(options).on('error', (error) => console.error(error)), // or your logger
      },
      ...queues.map((queue) => ({
        provide: tokenOf(queue),
        inject: [CLIENT],
        useFactory: (client: RedelayedClient) => client.getReliableQueue(queue),
      })),
    ]
    return { module: RedelayedModule, global: true, providers, exports: [CLIENT, ...queues.map(tokenOf)] }
  }

  /** The last of Nest's hooks: all others may still use the client. */
  async onApplicationShutdown(): Promise<void> {
    await this.client.shutdown()
    log('the client is shut down')
  }
}

const REMINDERS = uniqueName('nestjs')

interface Reminder {
  text: string
}

@Injectable()
class Reminders {
  constructor(@InjectQueue(REMINDERS) private readonly queue: ReliableQueue<Reminder>) {}

  async remind(text: string, delay: number): Promise<string> {
    const { id } = await this.queue.add({ text }, { delay })
    return id
  }

  cancel(id: string): Promise<boolean> {
    return this.queue.cancel(id)
  }
}

@Injectable()
class ReminderWorker implements OnApplicationBootstrap, BeforeApplicationShutdown {
  worker: Worker | undefined
  readonly sent: string[] = []

  constructor(
    @InjectClient() private readonly client: RedelayedClient,
    @InjectQueue(REMINDERS) private readonly queue: ReliableQueue<Reminder>,
  ) {}

  onApplicationBootstrap(): void {
    this.worker = this.client.createWorker(this.queue, (reminder) => this.send(reminder), { concurrency: 5 })
    log('the worker begins')
  }

  async beforeApplicationShutdown(): Promise<void> {
    await this.worker?.close()
    log('the worker has ended')
  }

  private send({ text }: Reminder): void {
    log(`sending "${text}"`)
    this.sent.push(text)
  }
}

@Module({
  imports: [RedelayedModule.forRoot({ url, queues: [REMINDERS] })],
  providers: [Reminders, ReminderWorker],
})
class AppModule {}

// With HTTP it would be `NestFactory.create(AppModule)`.
const app = await NestFactory.createApplicationContext(AppModule, { logger: ['error', 'warn'] })
app.enableShutdownHooks() // SIGTERM closes it
const queue = app.get<ReliableQueue<Reminder>>(tokenOf(REMINDERS))
const { worker, sent } = app.get(ReminderWorker)
assert.ok(worker !== undefined)

try {
  const reminders = app.get(Reminders)
  const handled = until(worker, () => true)
  const tea = await reminders.remind('tea', 60_000)
  const ada = await reminders.remind('call Ada', 200)
  assert.equal(await reminders.cancel(tea), true)
  const { id, outcome } = await handled

  assert.deepEqual({ id, outcome }, { id: ada, outcome: 'completed' })
  assert.deepEqual(sent, ['call Ada'])
  assert.equal(await queue.size(), 0)
} finally {
  await queue.clear()
  await app.close()
}
await assert.rejects(queue.size(), ShutdownError)
