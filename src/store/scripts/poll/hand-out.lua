-- A part of reliable-poll.lua: functions for claiming messages with and without a group. `fitting` reads messages as far as they fit,
-- `endOf` ends messages that expired or were delivered too often, `hand` adds a claimed message to the reply.

local byAttempt = {}
local function newDelivery(attempt)
  local delivery = byAttempt[attempt] or attempt .. ' ' .. token
  byAttempt[attempt] = delivery
  return delivery
end

-- Whether a message is suspect, which few are.
local function isSuspect(delivery)
  return isBeforehand and delivery and string.sub(delivery, -1) == '~'
end

-- Messages with the same priority and delivery that follow each other are a run: their common fields are sent once, because each part of a
-- reply takes the client longer than Redis.
local last, run, runPriority, runDelivery, runHead = #reply, nil, nil, nil, nil
local function hand(priority, attempt, delivery, id, visible, record)
  if priority ~= runPriority or delivery ~= runDelivery then
    reply[last + 1], reply[last + 2], reply[last + 3] = priority, delivery, 0
    run, runPriority, runDelivery, last = last + 3, priority, delivery, last + 3
    runHead = log and changeHead('p', attempt, hiddenUntil, priority == GROUPED and 0 or priority)
  end
  reply[run] = reply[run] + 1
  reply[last + 1], reply[last + 2], reply[last + 3] = id, visible, record
  last = last + 3
  if log then noteChange(log, runHead, id) end
end

-- The first records as far as they fit, and their deliveries; the very first record whatever its size. It reads them
-- in small pages, and measures each record if the first of its page is large, so that an unexpectedly large record costs one
-- page; to measure every record would cost several hundredths of a poll.
local function fitting(ids)
  local records, delivered = {}, deliveriesOf(deliveries, ids)
  for from = 1, #ids, PAGE do
    local to = math.min(from + PAGE - 1, #ids)
    local first = #ids > 1 and redis.call('HSTRLEN', messages, ids[from]) or 0
    if first > SMALL then
      local size, fits = first, from
      while fits < to do
        size = size + redis.call('HSTRLEN', messages, ids[fits + 1])
        if bytes + size > BYTES then break end
        fits = fits + 1
      end
      to = fits
    end
    if bytes > 0 and bytes + first > BYTES then return records, delivered, from - 1 end
    local page, total = redis.call('HMGET', messages, unpack(ids, from, to)), bytes
    for n = 1, to - from + 1 do
      local record = page[n]
      if record then
        if total > 0 and total + #record > BYTES then
          bytes = total
          return records, delivered, from + n - 2
        end
        total = total + #record
      end
      records[from + n - 1] = record
    end
    bytes = total
    if to < #ids and to < from + PAGE - 1 then return records, delivered, to end
  end
  return records, delivered, #ids
end

-- The first visible ids of a schedule with their times, each in its own table, and whether the ids of this poll have more than `BYTES`:
-- from there on each record is copied about ten times. Ids of other programs can be of any size, so it reads a few first, then small pages,
-- and none after one of large ids: as `namesOf`, without its copies.
local areSmall, idBytes = false, 0
local function visibleOf(at, most)
  local ids, times, found, many = {}, {}, 0, math.min(most, areSmall and largeNames.page or largeNames.few)
  while many > 0 do
    local page, before = redis.pcall('ZRANGEBYSCORE', due[at], '-inf', now, 'WITHSCORES', 'LIMIT', found, many), idBytes
    if page.err then note('the schedule of priority ' .. (at - 1), page.err) end
    for n = 1, #page, 2 do
      local id = page[n]
      idBytes = idBytes + #id
      if idBytes > BYTES and idBytes > #id then return ids, times, true end
      found = found + 1
      ids[found], times[found] = id, page[n + 1]
    end
    if #page < 2 * many then break end
    areSmall = idBytes - before <= many * largeNames.above
    many = areSmall and math.min(most - found, largeNames.page) or 0
  end
  return ids, times, idBytes > BYTES
end

local ended = settings.keepCompleted and {}
-- `least`: the size of the smallest page. It grows after a page without a message to hand out, because any number of such ids can be before
-- the first message.
local isFull, least = want == 0, 0

-- Ends a message that expired or was delivered too often. `kept`: the dead letters cannot take it now.
local function endOf(id, attempts, expires, limit)
  if expires and expires <= now then
    deadLetter(queue, nil, id, now)
    expired = expired + 1
    if left then noteEnded(left.expired, id) end
    if log then noteChange(log, 'e,,,', id) end
  elseif attempts < (limit or limitOfAll) then
    return nil
  else
    local failed = deadLetter(queue, dead, id, now)
    if failed then
      note('the dead letters', failed)
      return 'kept'
    end
    deadLettered = deadLettered + 1
    if left then noteEnded(left.dead, id) end
    if log then noteChange(log, changeHead('d', attempts), id) end
  end
  if ended then noteEnded(ended, id) end
  return 'gone'
end
