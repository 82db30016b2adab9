export type CommandArg = string | Buffer

/** What is needed of a connection to run scripts. Rejections are already the package's own errors. */
export interface Sender {
  /**
   * `idempotent` commands may be sent again when the connection breaks before their reply came; where they are a part of a call, no later
   * than if they had begun with it at `startedAt`.
   */
  call(
    command: string,
    args: readonly CommandArg[],
    options?: { idempotent?: boolean; startedAt?: number },
  ): Promise<unknown>
  /** One result or error per command, in order. */
  pipeline(commands: readonly (readonly [command: string, args: readonly CommandArg[]])[]): Promise<unknown[]>
}
