/** Settings of Redisson that have no meaning here, by the reason. Any other unknown setting is an error, as in Redisson. */
const REASONS: Readonly<Record<string, string>> = {
  'a client here needs few connections and no pools': `connectionPoolSize connectionMinimumIdleSize
    subscriptionConnectionPoolSize subscriptionConnectionMinimumIdleSize subscriptionsPerConnection
    masterConnectionPoolSize masterConnectionMinimumIdleSize slaveConnectionPoolSize slaveConnectionMinimumIdleSize
    idleConnectionTimeout`,
  'all commands go to the master': `readMode subscriptionMode loadBalancer slaveAddresses fallbackLoadingToMaster
    failedSlaveReconnectionInterval failedSlaveCheckInterval failedSlaveNodeDetector checkMasterLinkStatus
    checkSlaveStatusWithSyncing shardedSubscriptionMode`,
  'reconnecting follows rules of its own':
    'retryAttempts retryInterval retryDelay reconnectionDelay subscriptionTimeout',
  'names are resolved at every connect': 'dnsMonitoring dnsMonitoringInterval dnsMonitoringTimes monitorIPChanges',
  'the topology is followed without asking every second':
    'scanInterval checkSlotsCoverage checkSentinelsList sentinelsDiscovery',
  'the operating system and ioredis decide': `keepAlive tcpKeepAlive tcpKeepAliveCount tcpKeepAliveIdle
    tcpKeepAliveInterval tcpUserTimeout`,
  'it is about threads and Netty': `threads nettyThreads executor nettyExecutor eventLoopGroup transportMode nettyHook
    connectionListener addressResolverGroupFactory useThreadClassLoader sslProvider lazyInitialization keepPubSubOrder
    protocol useScriptCache performanceMode valkeyCapabilities`,
  'it is about objects that this package does not have': `lockWatchdogTimeout lockWatchdogBatchSize fairLockWaitTimeout
    checkLockSyncedSlaves slavesSyncTimeout reliableTopicWatchdogTimeout minCleanUpDelay maxCleanUpDelay
    cleanUpKeysAmount referenceEnabled slots topicSlots meterMode meterRegistryProvider`,
}

const REASON_OF = new Map(
  Object.entries(REASONS).flatMap(([reason, names]) => names.split(/\s+/).map((name) => [name, reason] as const)),
)

/** Why a setting is ignored; `undefined` when it is not one of those. */
export function reasonToIgnore(setting: string): string | undefined {
  return REASON_OF.get(setting)
}
