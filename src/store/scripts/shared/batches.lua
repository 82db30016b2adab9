-- Batches: how many messages of one name are there, and how the others have ended. All of it is in one hash, so that a key of another type takes all or
-- nothing: "m" and an id -> the batch of a message; "b" and a batch -> "<state>,<pending>,<completed>,<dead>,<expired>,<removed>,<opened>,<closed>,
-- <finished>", the last three in epoch ms; "l" and a batch -> its last message until that is added, "<priority>,<time to live in ms>,<delivery limit>,
-- <bytes of headers>,<bytes of id>\n", id, headers, payload. The states are "o" for open, "c" for closed, "f" for finished: then the batch is in
-- `at`, by when, until it is forgotten. "n" -> how many have not finished, where there are any.
local LONGEST_BATCH, LONGEST_COUNTS = 255, 160
local MOST_BATCHES, BATCH_MS, MOST_FORGOTTEN = 10000, 604800000, 100
local BATCH_PAGE = 16

-- Nothing for what no script has written, and where the key is of another type.
local function readBatch(batches, name)
  local size = redis.pcall('HSTRLEN', batches.key, 'b' .. name)
  if type(size) ~= 'number' or size == 0 or size > LONGEST_COUNTS then return nil end
  local text = redis.call('HGET', batches.key, 'b' .. name)
  local state, pending, completed, dead, expired, removed, opened, closed, finished =
    string.match(text, '^([ocf]),(%d+),(%d+),(%d+),(%d+),(%d+),(%d+),(%d*),(%d*)$')
  local batch = {
    state = state, pending = setting(pending, 0), completed = setting(completed, 0), dead = setting(dead, 0),
    expired = setting(expired, 0), removed = setting(removed, 0), opened = opened, closed = closed, finished = finished,
  }
  return batch.pending and batch.completed and batch.dead and batch.expired and batch.removed and batch
end

local function newBatch(now)
  return {
    state = 'o', pending = 0, completed = 0, dead = 0, expired = 0, removed = 0, opened = string.format('%.0f', now), closed = '', finished = '',
  }
end

local function countsOf(batch)
  return string.format('%s,%.0f,%.0f,%.0f,%.0f,%.0f,%s,%s,%s', batch.state, batch.pending, batch.completed, batch.dead, batch.expired,
    batch.removed, batch.opened, batch.closed, batch.finished)
end

-- As one whose visibility has ended: from there the next poll brings it into its schedule, which not all scripts have. One that is there under its
-- id stays, so that there are never two. Returns true where a key of another type prevents it.
local function addLast(batches, name)
  local text = redis.call('HGET', batches.key, 'l' .. name)
  if not text then return end
  local priority, ttl, limit, headers, size, from = string.match(string.sub(text, 1, 100), '^(%d),(%d*),(%d*),(%d+),(%d+)\n()')
  if not from or #headers > 16 or tonumber(size) > #text then return end
  local id, now = string.sub(text, from, from + tonumber(size) - 1), batches.now
  local isThere = redis.pcall('HEXISTS', batches.messages, id)
  if isThere ~= 0 then return isThere ~= 1 end
  local lives = setting(ttl, 1)
  local meta = writeMeta(lives and math.min(now + lives, 9007199254740991), setting(limit, 1, 1000000), tonumber(headers))
  local record = meta .. string.sub(text, from + tonumber(size))
  if type(redis.pcall('ZADD', batches.inFlight, beforehand(now), priority .. id)) ~= 'number' then return true end
  redis.call('HSET', batches.messages, id, record)
  local log = batches.log
  if log then noteChange(log, changeHead('a', nil, string.format('%.0f', now), priority), id, log.records and record) end
  publishSlot(batches.messages, now)
end

-- `by`: how many more there are that have not finished.
local function countUnfinished(batches, by)
  local isShort = redis.call('HSTRLEN', batches.key, 'n') <= 16
  local count = (isShort and setting(redis.call('HGET', batches.key, 'n'), 0) or 0) + by
  if count > 0 then redis.call('HSET', batches.key, 'n', string.format('%.0f', count)) else redis.call('HDEL', batches.key, 'n') end
end

-- Batches that have finished go when there are too many of them, else when it is too long ago: in one script as many as have finished, and 100 more.
local function forgetBatches(batches)
  if batches.over then countUnfinished(batches, -batches.over) end
  batches.over = nil
  local came = batches.came
  local size = came and redis.pcall('ZCARD', batches.at)
  if type(size) ~= 'number' then return end
  batches.came = nil
  local limit = came + (batches.mayForget or MOST_FORGOTTEN)
  local surplus, gone = size - MOST_BATCHES, {}
  if surplus > 0 and limit > 0 then
    gone = namesOf(math.min(surplus, limit), function(most) return redis.call('ZRANGE', batches.at, 0, most - 1) end)
  elseif limit > 0 then
    local before = '(' .. string.format('%.0f', batches.now - BATCH_MS)
    gone = namesOf(limit, function(most) return redis.call('ZRANGEBYSCORE', batches.at, '-inf', before, 'LIMIT', 0, most) end)
  end
  batches.mayForget = limit - #gone
  for _, name in ipairs(gone) do
    local batch = #name <= LONGEST_BATCH and readBatch(batches, name)
    if batch and batch.state == 'f' then redis.call('HDEL', batches.key, 'b' .. name) end
    redis.call('ZREM', batches.at, name)
  end
end

-- Behind all that have finished earlier, also in the same millisecond, and where the clock was set back: else it could be the first to be forgotten. A
-- time that is further ahead, another program has written.
local function noteFinished(batches, name)
  local newest = redis.pcall('ZRANGE', batches.at, -1, -1, 'WITHSCORES')
  if newest.err then return end
  local last = tonumber(newest[2])
  if last and last > batches.now + BATCH_MS then last = nil end
  redis.call('ZADD', batches.at, string.format('%.0f', last and math.max(batches.now, last + 1) or batches.now), name)
  batches.came = (batches.came or 0) + 1
end

-- Writes the counts of a batch; `forgetBatches` has to come after it. One that is closed and has no message any more finishes: its last message is added, and those who wait are called.
-- Where a key of another type prevents the last message, it is kept, and the batch stays closed until it is closed once more.
local function putBatch(batches, name, batch)
  local isOver = batch.state == 'c' and batch.pending == 0 and not addLast(batches, name)
  if isOver then batch.state, batch.finished, batches.over = 'f', string.format('%.0f', batches.now), (batches.over or 0) + 1 end
  redis.call('HSET', batches.key, 'b' .. name, countsOf(batch))
  if not isOver then return end
  redis.call('HDEL', batches.key, 'l' .. name)
  noteFinished(batches, name)
  publishLines(batches.messages, ':batch-ends:', {name})
end

-- The batches of some messages, false for none; nothing where the key is of another type. After the first name that no script has written each is
-- measured, because each can be of any size.
local function batchesOf(batches, ids)
  local names, areShort = {}, true
  for from = 1, #ids, BATCH_PAGE do
    local to, fields = math.min(from + BATCH_PAGE - 1, #ids), {}
    for n = from, to do fields[#fields + 1] = 'm' .. ids[n] end
    if areShort then
      local page = redis.pcall('HMGET', batches.key, unpack(fields))
      if page.err then return nil end
      for n, name in ipairs(page) do
        names[from + n - 1] = name and #name <= LONGEST_BATCH and name
        areShort = areShort and not (name and #name > LONGEST_BATCH)
      end
    else
      for n, field in ipairs(fields) do
        local isKnown = redis.call('HSTRLEN', batches.key, field) <= LONGEST_BATCH
        names[from + n - 1] = isKnown and redis.call('HGET', batches.key, field)
      end
    end
  end
  return names
end

-- Counts messages out of their batches that have ended: `how` is "completed", "dead", "expired" or "removed". Only after all else of them is written, and
-- before the changes are.
local function leaveBatches(batches, ids, how)
  if not ids or #ids == 0 then return end
  local counts, names, fields = {}, {}, {}
  local seen = {}
  for n, name in ipairs(batchesOf(batches, ids) or {}) do
    if name and not seen[ids[n]] then
      seen[ids[n]] = true
      if not counts[name] then names[#names + 1] = name end
      counts[name], fields[#fields + 1] = (counts[name] or 0) + 1, 'm' .. ids[n]
    end
  end
  if #fields > 0 then redis.call('HDEL', batches.key, unpack(fields)) end
  for _, name in ipairs(names) do
    local batch = readBatch(batches, name)
    if batch then
      batch.pending, batch[how] = math.max(0, batch.pending - counts[name]), batch[how] + counts[name]
      putBatch(batches, name, batch)
    end
  end
  forgetBatches(batches)
end
