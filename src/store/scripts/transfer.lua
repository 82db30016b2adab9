-- Move due entries to the destination list, in the order of their due times and, within one millisecond, of their ids.
-- Works for about `budgetUs` and then returns, however many are left (by `limit` where the clock stands still in
-- scripts); each round of the loop is complete in itself, and the destination is pushed to first, so that an error
-- leaves everything not yet moved where it was.
-- An entry that cannot be read goes to the quarantine list and never stops the rest: the script walks no long order list for it.
-- Where the quarantine cannot take such an entry, the entry is due again an hour later.
--
-- KEYS[1] timeouts     zset    packed entry -> due time, epoch ms
-- KEYS[2] order        list    packed entries in offer order
-- KEYS[3] destination  list    payloads ready to be taken
-- KEYS[4] quarantine   list    what could not be read, as "<reason> <epoch ms> <bytes>"
-- KEYS[5] leader       string  "<epoch ms at which the lease ends> <client>", which expires with the lease
--
-- ARGV[1] channel   text     where the script publishes the time of the followers' next transfer
-- ARGV[2] nowMs     integer  the caller's clock, or -1 for the server's
-- ARGV[3] budgetUs  integer  microseconds to work before returning
-- ARGV[4] limit     integer  most entries to move or set aside
-- ARGV[5] client    text     who calls
-- ARGV[6] leaseMs   integer  the longest lease: that of a leader that drains a backlog
-- ARGV[7] leastLeaseMs  integer  the shortest lease of a leader that has moved all that was due
-- ARGV[8] subscribersPerLeaseMs  integer  such a lease is one millisecond longer for so many subscribers
-- ARGV[9] idleMs    integer  when nothing is left, the followers wait this long
-- ARGV[10] announce  flag     publish even if nothing was moved
-- ARGV[11] renew    flag     the followers know of an earlier time than the caller's lease: take a new lease and publish it
-- ARGV[12] bytes    integer  none is moved or set aside after the entry that brings them to so many bytes
-- ARGV[13] largeHead  text   the due time of a large entry that was seen as the next one not long ago, or "": as a reply said it
-- ARGV[14] largeFirst  text  the due time of a large entry that was seen as the first one of the order list not long ago, or "": the same
--
-- returns {moved, next due time or "", now in ms with fractions, lateness in ms of the most overdue entry moved,
--   malformed entries set aside, entries with a negative due time set aside, subscribers of the channel,
--   the server's error about the order list or "", microseconds worked: 0 on servers whose clock stands still in a script,
--   who leads: "self", "other" or "none", when that lease ends or 0, elements of the order list in no schedule set aside,
--   the server's error about the quarantine list or "", malformed entries put off because the quarantine cannot take them,
--   `largeHead` and `largeFirst` of the caller's next transfer}
local timeouts, order, destination, quarantine = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local channel = ARGV[1]
local budget, limit, most = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[12])

local function microseconds()
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2]
end

local started = microseconds()
local nowExact = started / 1000
if tonumber(ARGV[2]) >= 0 then nowExact = tonumber(ARGV[2]) end
local now = string.format('%.0f', math.floor(nowExact))

-- Microseconds left to work; a clock that was set back ends the work.
local function timeLeft()
  local elapsed = microseconds() - started
  return elapsed < 0 and 0 or budget - elapsed
end

-- include shared/entry-layout.lua

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

-- Large entries that are not due are not read by each transfer. Whether one is still there is not asked for: to count it Redis compares all of it.
-- Where it is gone, the next transfer comes early, and entries leave the order list one by one, until the caller has forgotten it.
local largeHead, largeFirst = ARGV[13], ARGV[14]
local function isAhead(due)
  return due ~= '' and tonumber(due) > nowExact
end
if not isAhead(largeHead) then largeHead = '' end
if not isAhead(largeFirst) then largeFirst = '' end

-- Nothing says how large entries are before they are read: so few at first, and never more than so many at once.
local FIRST_READ, MOST_READ = 2, 64
local bytes = 0

-- Most transfers find one due entry or none: the first two say so, and what is due next. Where a large one is known they are not read.
local nowMs = math.floor(nowExact)
local isNone, isOne, peeked, afterHead, firstDue = false, false, {}, {}, {}
if largeHead == '' then
  peeked = redis.call('ZRANGE', timeouts, 0, 0, 'WITHSCORES')
  local due = tonumber(peeked[2])
  isNone = not peeked[1] or due and due > nowMs
  if due and due >= 0 and due <= nowMs then
    afterHead = redis.call('ZRANGE', timeouts, 1, 1, 'WITHSCORES')
    local nextDue = tonumber(afterHead[2])
    isOne = not afterHead[1] or nextDue and nextDue > nowMs
    firstDue = {peeked[1], not isOne and nextDue and afterHead[1] or nil}
  end
end

local negative, isRefused = 0, false
while negative < 100 and bytes < most and not isRefused and not isNone and not isOne do
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
local done, overdue = 0, math.min(limit, isNone and 0 or isOne and 1 or redis.call('ZCOUNT', timeouts, 0, now))
local size, sub = 10, string.sub
while done < overdue and bytes < most do
  -- A page: the next entries that are readable and, where they belong into the order list, lead it. Read in steps.
  local page = math.min(size, overdue - done)
  local payloads, ordered, run, matched = {}, {}, 0, 0
  local first, read
  local isWhole = true
  while isWhole and run < page and bytes < most do
    local from, seen, step = run, done + run, FIRST_READ
    if seen > 0 then
      -- as many as fit by the mean of those before
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
      -- Others are read where the first one is the one that is expected: a stranger's can be of any size.
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
    -- asked for the first only: the server takes long to write a score as text
    if moved == 0 then lateness = lateOf(first) end
    -- They are the lowest ranks of the schedule and the first of the order list: three commands move all of them.
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

local function readNext()
  if isNone then return peeked end
  if isOne and moved == 1 then return afterHead end
  local isKnown = largeHead ~= '' and redis.call('ZCARD', timeouts) > 0 and redis.call('ZCOUNT', timeouts, 0, '(' .. largeHead) == 0
  if isKnown then return {nil, largeHead} end
  return redis.call('ZRANGEBYSCORE', timeouts, 0, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
end
local nextOne = readNext()
-- What cannot be read, and is large, would be read here by each transfer until its time comes.
if nextOne[1] and #nextOne[1] > LARGE and not layout(nextOne[1]) and setAside('malformed', nextOne[1]) then
  malformed = malformed + 1
  isNone, isOne = false, false
  nextOne = readNext()
end
local following = nextOne[2]
if following and nextOne[1] and #nextOne[1] > LARGE then largeHead = following
elseif not following then largeHead = '' end
if lowest > 0 and quarantineError == '' then following = now end -- others with a negative due time
local due = tonumber(following)

-- Who leads: docs/decisions/0039. A lease of a length that the script does not give is none: a clock was set.
local client, leaseMs = ARGV[5], tonumber(ARGV[6])
local leastLeaseMs, subscribersPerLeaseMs = tonumber(ARGV[7]), tonumber(ARGV[8])
local subscribers = redis.pcall('PUBSUB', 'NUMSUB', channel)[2] or 0
local worked = moved + malformed + negative > 0
local leader, leaseUntil = 'none', 0
-- no more than a lease has: what a stranger writes there may be of any size
local lease = redis.pcall('GETRANGE', KEYS[5], 0, 99)
if type(lease) == 'string' then
  local ends, holder = string.match(lease, '^(%d+) (.*)$')
  ends = tonumber(ends)
  if ends and ends > nowExact and ends <= nowExact + leaseMs then
    leaseUntil = ends
    leader = holder == client and 'self' or 'other'
  end
end
local renews = ARGV[11] == '1' and leader == 'self' -- the followers know an earlier time than the lease
local wanted = 0
if due and due <= nowExact then
  wanted = leaseMs
elseif moved > 0 and subscribers > 1 then
  wanted = math.min(leaseMs, math.max(leastLeaseMs, math.floor(subscribers / subscribersPerLeaseMs)))
end
local isKnown = false -- the followers wait for long enough
if wanted > 0 and leader ~= 'other' then
  -- Half a lease is enough: the caller's next transfer may be that late.
  if leader == 'self' and not renews and due and leaseUntil - math.max(due, nowExact) >= wanted / 2 then
    isKnown = true
  else
    leaseUntil = math.floor(nowExact) + wanted
    -- where the server refuses this, the followers wait all the same
    local taken = redis.pcall('SET', KEYS[5], string.format('%.0f ', leaseUntil) .. client, 'PX', wanted)
    leader = taken.ok and 'self' or 'none'
  end
elseif not worked then
  isKnown = leader == 'other' or leader == 'self' and not renews and due and due < leaseUntil
end
local announced = due and math.max(due, leaseUntil) or nowExact + tonumber(ARGV[9])
if (worked or renews or ARGV[10] == '1') and not isKnown and announced < 9007199254740992 then
  redis.call('PUBLISH', channel, string.format('%.0f', math.floor(announced)))
end
return {
  moved, following or '', string.format('%.3f', nowExact), string.format('%.0f', lateness),
  malformed, negative, subscribers, orderError, budget - timeLeft(), leader, string.format('%.0f', leaseUntil),
  orphans, quarantineError, postponed, largeHead, largeFirst
}
