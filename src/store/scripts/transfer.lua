-- Move due entries to the destination list, in the order of their due times and, within one millisecond, of their ids.
-- Works for about `budgetUs` and then returns, however many are left (by `limit` where scripts cannot measure time); each round of the loop
-- is complete in itself, and the destination is pushed to first, so that an error leaves everything not yet moved where it was.
-- An unreadable entry goes to the quarantine list and never stops the rest: the script does not walk a long order list for it.
-- If the quarantine cannot take such an entry, the entry is due again an hour later.
-- Then it promotes a part of the first bucket whose time has come. Messages due after the first message of a bucket wait for the bucket, so
-- if the minute of the bucket has begun, this comes first.
--
-- KEYS[1] timeouts     zset    packed entry -> due time, epoch ms
-- KEYS[2] order        list    packed entries in offer order
-- KEYS[3] destination  list    payloads ready to be taken
-- KEYS[4] quarantine   list    what could not be read, as "<reason> <epoch ms> <bytes>"
-- KEYS[5] leader       string  "<epoch ms at which the lease ends> <client>", which expires with the lease
-- KEYS[6] wheel        zset    minute of a bucket -> when the bucket is promoted, epoch ms
--
-- ARGV[1] channel   text     where the script publishes the time of the followers' next transfer
-- ARGV[2] nowMs     integer  the caller's clock, or -1 for the server's
-- ARGV[3] budgetUs  integer  microseconds to work before returning
-- ARGV[4] limit     integer  most entries to move or set aside
-- ARGV[5] client    text     the caller
-- ARGV[6] leaseMs   integer  the longest lease: that of a leader that drains a backlog
-- ARGV[7] leastLeaseMs  integer  the shortest lease of a leader that has moved all that was due
-- ARGV[8] subscribersPerLeaseMs  integer  the shortest lease is one millisecond longer for each this many subscribers
-- ARGV[9] idleMs    integer  when nothing is left, the followers wait this long
-- ARGV[10] announce  flag     publish even if nothing was moved
-- ARGV[11] renew    flag     the followers know of an earlier time than the caller's lease: take a new lease and publish it
-- ARGV[12] bytes    integer  move or set aside no more once the entries have this many bytes
-- ARGV[13] largeHead  text   the due time of a large entry that was recently the next one, from an earlier reply, or ""
-- ARGV[14] largeFirst  text  the due time of a large entry that was recently the first of the order list, from an earlier reply, or ""
-- ARGV[15] buckets  flag     whether the caller puts messages into buckets; the users of other clients may lack the right to look for them
--
-- returns {moved, next due time or "", now in ms with fractions, lateness in ms of the most overdue entry moved,
--   malformed entries set aside, entries with a negative due time set aside, subscribers of the channel,
--   the server's error about the order list or "", microseconds worked: 0 where scripts cannot measure that,
--   who leads: "self", "other" or "none", when that lease ends or 0, elements of the order list in no schedule set aside,
--   the server's error about the quarantine list or "", malformed entries put off because the quarantine cannot take them,
--   `largeHead` and `largeFirst` of the caller's next transfer, steps of promotions: elements and buckets, the server's error about the
--   wheel or ""}
local timeouts, order, destination, quarantine, wheel = KEYS.timeouts, KEYS.order, KEYS.destination, KEYS.quarantine, KEYS.wheel
local channel = ARGV.channel
local budget, limit, most = tonumber(ARGV.budgetUs), tonumber(ARGV.limit), tonumber(ARGV.bytes)

-- include shared/elapsed.lua

local nowExact = started / 1000
if tonumber(ARGV.nowMs) >= 0 then nowExact = tonumber(ARGV.nowMs) end
local now = string.format('%.0f', math.floor(nowExact))

-- Microseconds left to work.
local function timeLeft()
  return budget - elapsed()
end

-- include shared/entry-layout.lua

-- include shared/next-step.lua

-- include shared/wheel.lua

-- include shared/wheel-promotion.lua

local SHORT = 1000 -- elements of an order list that is walked for an entry that cannot be delivered
local LATER_MS = 3600000
local LARGE = 65536
local quarantineError = ''
-- Whether the order list may begin with elements that are in no schedule.
local mayHaveOrphans = false
local isShort

local function quarantined(reason, entry)
  local pushed = redis.pcall('RPUSH', quarantine, reason .. ' ' .. now .. ' ' .. entry)
  if type(pushed) == 'number' then return true end
  quarantineError = pushed.err
  return false
end

local function setAside(reason, entry)
  if not quarantined(reason, entry) then return false end
  if isShort == nil then
    local length = redis.pcall('LLEN', order)
    isShort = type(length) == 'number' and length <= SHORT
  end
  if isShort then redis.call('LREM', order, 1, entry) else mayHaveOrphans = true end
  redis.call('ZREM', timeouts, entry)
  return true
end

-- Transfers do not read a large entry again while it is not due. They do not ask whether it is still there, because Redis would compare all
-- of it. If it is gone, the next transfer comes early, and entries leave the order list one by one, until the caller has forgotten it.
local largeHead, largeFirst = ARGV.largeHead, ARGV.largeFirst
local function isAhead(due)
  local at = tonumber(due)
  return at and at > nowExact
end
if not isAhead(largeHead) then largeHead = '' end
if not isAhead(largeFirst) then largeFirst = '' end

-- The number of entries to read first and at most, because their size is unknown before they are read.
local FIRST_READ, MOST_READ = 2, 64
local bytes = 0

-- Most transfers find one due entry or none: the first two entries show that, and the next due time. They are not read if a large one is
-- known.
local nowMs = math.floor(nowExact)
-- The due time up to which messages are delivered: those of an overdue bucket go first.
local deliverUpTo = nowMs
-- Transfers of sweeps, which have `announce` off, look for buckets that the wheel lacks. On a busy queue a sweep may never run a transfer
-- of its own, so one of 61 of the other transfers looks, too.
if ARGV.buckets == '1' and (ARGV.announce ~= '1' or nowMs % 61 == 0) then restoreLost(wheel, nowMs) end
-- `promoted` counts what the wheel lost to this script: here the foreign members that were removed, later also what was promoted.
local bucket, wheelError, promoted = firstBucket(wheel)
local isMore = promoted > 0 and not bucket[1]
local reached = bucket[1] and promotionOf(horizonOf(wheel, nowMs))
local promotes = bucket[1] and tonumber(bucket[2]) <= reached
-- a bucket that this user cannot access, or not while a slot of a cluster moves, must not stop the rest
local isHeldUp = promotes
  and type(redis.pcall('EXISTS', wheelKey(wheel, 'gone-' .. bucket[1]), wheelKey(wheel, 'wheel-' .. bucket[1]))) ~= 'number'
local AGAIN_MS = 1000 -- until a promotion that waits for the cancelled ids looks again
local waitsForIds = false
local function promote()
  local steps, problem
  steps, bucket, problem, isHeldUp, isMore, waitsForIds = promoteBuckets(timeouts, wheel, bucket, reached, nowMs)
  promoted, promotes = promoted + steps, false
  if problem ~= '' then wheelError = problem end
end
-- Due messages wait for a late bucket. If the bucket ends here, they are delivered here: another program could write another bucket before
-- the next transfer.
if promotes and not isHeldUp and bucket[1] * MINUTE <= nowMs then promote() end
if bucket[1] and not isHeldUp and tonumber(bucket[2]) <= reached then deliverUpTo = math.min(nowMs, bucket[1] * MINUTE - 1) end
local nothingDue, singleDue, peeked, afterHead, firstDue = false, false, {}, {}, {}
if largeHead == '' then
  peeked = redis.call('ZRANGE', timeouts, 0, 0, 'WITHSCORES')
  local due = tonumber(peeked[2])
  nothingDue = not peeked[1] or due and due > deliverUpTo
  if due and due >= 0 and due <= deliverUpTo then
    afterHead = redis.call('ZRANGE', timeouts, 1, 1, 'WITHSCORES')
    local nextDue = tonumber(afterHead[2])
    singleDue = not afterHead[1] or nextDue and nextDue > deliverUpTo
    firstDue = {peeked[1], not singleDue and nextDue and afterHead[1] or nil}
  end
end

local negative, isRefused = 0, false
while negative < 100 and bytes < most and not isRefused and not nothingDue and not singleDue do
  local below = redis.call('ZRANGEBYSCORE', timeouts, '-inf', '(0', 'LIMIT', 0, FIRST_READ)
  for _, entry in ipairs(below) do
    isRefused = not setAside('negative-due', entry)
    if isRefused then break end
    negative = negative + 1
    bytes = bytes + #entry
  end
  if #below < FIRST_READ or timeLeft() <= 0 then break end
end
-- the rank of the first due entry
local lowest = 0
if negative > 0 or isRefused then lowest = redis.call('ZCOUNT', timeouts, '-inf', '(0') end

local moved, malformed, postponed, lateness = 0, 0, 0, 0
local orderError = ''
local function lateOf(entry)
  return math.max(0, nowMs - (firstDue[1] == entry and peeked[2] or redis.call('ZSCORE', timeouts, entry)))
end
local done, overdue = 0, math.min(limit, nothingDue and 0 or singleDue and 1 or redis.call('ZCOUNT', timeouts, 0, string.format('%.0f', deliverUpTo)))
local size, sub = 10, string.sub
while done < overdue and bytes < most do
  -- A page: the next entries that are readable and lead the order list, if they belong in it. Read in steps.
  local page = math.min(size, overdue - done)
  local payloads, ordered, run, matched = {}, {}, 0, 0
  local first, read
  local isWhole = true
  while isWhole and run < page and bytes < most do
    local from, seen, step = run, done + run, FIRST_READ
    if seen > 0 then
      -- as many as fit by the mean size so far
      step = (most - bytes) * seen / bytes
      step = step < MOST_READ and math.max(1, math.floor(step)) or MOST_READ
    end
    local last = math.min(from + step, page) - 1
    if seen == 0 and firstDue[1] and #firstDue == last + 1 then read = firstDue
    else read = redis.call('ZRANGE', timeouts, lowest + from, lowest + last) end
    first = first or read[1]
    local count, orderedCount, firstOrdered = 0, 0, nil
    for n = 1, #read do
      local entry = read[n]
      local start, inOrder = layout(entry)
      if not start then break end
      count, payloads[from + n] = n, sub(entry, start)
      bytes = bytes + #entry
      if inOrder then
        ordered[from + n] = true
        firstOrdered = firstOrdered or entry
        orderedCount = orderedCount + 1
      end
      if bytes >= most then break end
    end
    if orderedCount == 0 then
      run = from + count
    else
      -- the others are read only if the first one is the expected one: an element of another program can be of any size
      local head, rest, at = false, {}, 0
      if largeFirst == '' then head = redis.pcall('LINDEX', order, matched) end
      if type(head) == 'table' then orderError = head.err end
      if type(head) == 'string' and #head > LARGE and head ~= firstOrdered then
        largeFirst = redis.call('ZSCORE', timeouts, head) or ''
        if not isAhead(largeFirst) then largeFirst = '' end
      end
      if head == firstOrdered and orderedCount > 1 then
        rest = redis.call('LRANGE', order, matched + 1, matched + orderedCount - 1)
      end
      for n = 1, count do
        if ordered[from + n] then
          local element = head
          if at > 0 then element = rest[at] end
          if element ~= read[n] then break end
          at = at + 1
        end
        run = from + n
      end
      matched = matched + at
    end
    isWhole = #read > 0 and run == from + #read
  end
  if not first then break end

  if run > 0 then
    -- only for the first one: the server takes long to write a score as text
    if moved == 0 then lateness = lateOf(first) end
    -- These are the lowest ranks of the schedule and the first of the order list: three commands move all of them.
    redis.call('RPUSH', destination, unpack(payloads, 1, run))
    if matched > 0 then redis.call('LTRIM', order, matched, -1) end
    redis.call('ZREMRANGEBYRANK', timeouts, lowest, lowest + run - 1)
    moved = moved + run
  elseif payloads[1] then
    if moved == 0 then lateness = lateOf(first) end
    -- Out of order: LREM walks the list, so the clock is read after each one.
    mayHaveOrphans = true
    for n, payload in ipairs(payloads) do
      redis.call('RPUSH', destination, payload)
      if ordered[n] then
        local removed = redis.pcall('LREM', order, 1, read[n])
        if type(removed) == 'table' and removed.err then orderError = removed.err end
      end
      redis.call('ZREM', timeouts, read[n])
      moved = moved + 1
      if timeLeft() <= 0 then break end
    end
  else
    for _, entry in ipairs(read) do
      if layout(entry) then break end
      if setAside('malformed', entry) then
        malformed = malformed + 1
      else
        redis.call('ZADD', timeouts, 'XX', string.format('%.0f', now + LATER_MS), entry)
        postponed = postponed + 1
      end
      bytes = bytes + #entry
      if bytes >= most or timeLeft() <= 0 then break end
    end
  end
  done = moved + malformed + postponed
  local left = timeLeft()
  if left <= 0 then break end
  local each = (budget - left) / math.max(1, done)
  size = math.max(1, math.min(size * 4, 640, math.floor(left / each)))
end

-- Elements at the head of the order list that are in no schedule are never delivered, and every delivery walks past them.
local orphans = 0
while mayHaveOrphans and largeFirst == '' and orphans < 100 and (orphans == 0 or timeLeft() > 0) do
  local head = redis.pcall('LINDEX', order, 0)
  local due = type(head) == 'string' and redis.call('ZSCORE', timeouts, head)
  if due and #head > LARGE and isAhead(due) then largeFirst = due end
  if type(head) ~= 'string' or due then break end
  if not quarantined('order-orphan', head) then break end
  redis.call('LPOP', order)
  orphans = orphans + 1
end

local workedUs = math.min(elapsed(), 1000000)
if promotes then
  promote()
  nothingDue, singleDue = false, false
end

local function readNext()
  if nothingDue then return peeked end
  if singleDue and moved == 1 then return afterHead end
  local headIsLarge = largeHead ~= '' and redis.call('ZCARD', timeouts) > 0 and redis.call('ZCOUNT', timeouts, 0, '(' .. largeHead) == 0
  if headIsLarge then return {nil, largeHead} end
  return redis.call('ZRANGEBYSCORE', timeouts, 0, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
end
local nextOne = readNext()
-- Each transfer would read a large unreadable entry here until its time comes, so it is set aside now.
if nextOne[1] and #nextOne[1] > LARGE and not layout(nextOne[1]) and setAside('malformed', nextOne[1]) then
  malformed = malformed + 1
  nothingDue, singleDue = false, false
  nextOne = readNext()
end
local following = nextOne[2]
if following and nextOne[1] and #nextOne[1] > LARGE then largeHead = following
elseif not following then largeHead = '' end
if lowest > 0 and quarantineError == '' then following = now end -- there are more with a negative due time
-- The next transfer is for the earlier of the head and the next promotion.
local nextPromotion = isMore and now or waitsForIds and string.format('%.0f', nowMs + AGAIN_MS)
if bucket[2] and not isHeldUp then
  local at = tonumber(bucket[2])
  -- After the clock was set back the promotion goes on. A time between two promotions, which another program has written, waits for the
  -- second one.
  at = at <= reached and math.min(at, nowMs) or math.max(at, reached + MINUTE)
  nextPromotion = string.format('%.0f', math.max(0, at))
end
if nextPromotion and (not following or tonumber(nextPromotion) < tonumber(following)) then following = nextPromotion end
local due = tonumber(following)

-- include transfer/lead.lua

local subscribers = redis.pcall('PUBSUB', 'NUMSUB', channel)[2] or 0
local lease = readLease({
  key = KEYS.leader, caller = ARGV.client,
  longestMs = tonumber(ARGV.leaseMs), leastMs = tonumber(ARGV.leastLeaseMs), subscribersPerMs = tonumber(ARGV.subscribersPerLeaseMs),
})
local renews = ARGV.renew == '1' and lease.leader == 'self' -- the followers know an earlier time than the lease
local hasWorked = moved + malformed + negative + promoted > 0
local wanted = wantedMs(lease, due, moved, subscribers)
local followersKnow = false -- they wait for long enough
if wanted > 0 and lease.leader ~= 'other' then
  followersKnow = not renews and isLongEnough(lease, wanted, due)
  if not followersKnow then takeLease(lease, wanted) end
elseif not hasWorked then
  followersKnow = lease.leader == 'other' or lease.leader == 'self' and not renews and due and due < lease.endsAt
end
local announced = due and math.max(due, lease.endsAt) or nowExact + tonumber(ARGV.idleMs)
if (hasWorked or renews or ARGV.announce == '1') and not followersKnow and announced < 9007199254740992 then
  redis.call('PUBLISH', channel, string.format('%.0f', math.floor(announced)))
end
return {
  moved, following or '', string.format('%.3f', nowExact), string.format('%.0f', lateness),
  malformed, negative, subscribers, orderError, workedUs, lease.leader, string.format('%.0f', lease.endsAt),
  orphans, quarantineError, postponed, largeHead, largeFirst, promoted, wheelError
}
