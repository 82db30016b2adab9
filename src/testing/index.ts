export { TestKitError, createTestKit } from './test-kit.js'
export type { KitState, TestKit, TestKitOptions } from './test-kit.js'
export type { FlakyServer } from './flaky-server.js'
