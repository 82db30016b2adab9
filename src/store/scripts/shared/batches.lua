-- Batches: how many messages of one name the queue has, and how the others have ended. All data is in one hash, so that a key of another
-- type affects all or nothing: "m" and an id -> the batch of a message; "b" and a batch ->
-- "<state>,<pending>,<completed>,<dead>,<expired>,<removed>,<opened>,<closed>,<finished>", the last three in epoch ms; "l" and a batch ->
-- its last message until that is added, "<priority>,<time to live in ms>,<delivery limit>,<bytes of headers>,<bytes of id>\n", id,
-- headers, payload. The states are "o" for open, "c" for closed, "f" for finished: then the batch is in `at`, by when, until it is
-- forgotten. "n" -> the number of unfinished batches, if there are any.
local LONGEST_BATCH, LONGEST_COUNTS = 255, 160
local MOST_BATCHES, BATCH_MS, MOST_FORGOTTEN = 10000, 604800000, 100
local BATCH_PAGE = 8

-- The counts of a batch; nothing if no script has written them, or if the key is of another type.
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

-- Adds the last message as one whose visibility has ended: the next poll moves it into its schedule, which not all scripts have as a key.
-- An existing message of its id stays, so that there are never two. Returns true if a key of another type prevents it.
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
  redis.pcall('HDEL', batches.deliveries, id) -- see shared/left-behind.lua
  local log = batches.log
  if log then noteChange(log, changeHead('a', nil, string.format('%.0f', now), priority), id, log.records and record) end
  publishSlot(batches.messages, now)
end

-- `by`: the change of the number of unfinished batches.
local function countUnfinished(batches, by)
  local isShort = redis.call('HSTRLEN', batches.key, 'n') <= 16
  local count = (isShort and setting(redis.call('HGET', batches.key, 'n'), 0) or 0) + by
  if count > 0 then redis.call('HSET', batches.key, 'n', string.format('%.0f', count)) else redis.call('HDEL', batches.key, 'n') end
end

-- Another program wrote a later time than this one, see `noteFinished`.
local function aheadOf(batches)
  return '(' .. string.format('%.0f', batches.now + BATCH_MS)
end

-- Removes finished batches if there are too many, or if they finished too long ago: in one script as many as have finished in it, and 100
-- more. Those with a foreign time go first: they would stay, and push out the others.
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
    local most = math.min(surplus, limit)
    gone = namesOf(most, function(many, from) return redis.call('ZRANGEBYSCORE', batches.at, aheadOf(batches), '+inf', 'LIMIT', from, many) end)
    if #gone == 0 then gone = namesOf(most, function(many, from) return redis.call('ZRANGE', batches.at, from, from + many - 1) end) end
  elseif limit > 0 then
    local before = '(' .. string.format('%.0f', batches.now - BATCH_MS)
    gone = namesOf(limit, function(many, from) return redis.call('ZRANGEBYSCORE', batches.at, '-inf', before, 'LIMIT', from, many) end)
  end
  batches.mayForget = limit - #gone
  for _, name in ipairs(gone) do
    local batch = #name <= LONGEST_BATCH and readBatch(batches, name)
    if batch and batch.state == 'f' then redis.call('HDEL', batches.key, 'b' .. name) end
    redis.call('ZREM', batches.at, name)
  end
end

-- Places a batch after all that have finished earlier, also in the same millisecond, and after the clock was set back: otherwise it could
-- be the first to be forgotten. Another program wrote any time that is more than a week ahead; the batch is placed before those, and no
-- later than that.
local function noteFinished(batches, name)
  local newest = redis.pcall('ZRANGE', batches.at, -1, -1, 'WITHSCORES')
  if newest.err then return end
  local last, most = tonumber(newest[2]), batches.now + BATCH_MS
  if last and last > most then
    local foreign = redis.call('ZCOUNT', batches.at, aheadOf(batches), '+inf')
    last = tonumber(redis.call('ZRANGE', batches.at, -1 - foreign, -1 - foreign, 'WITHSCORES')[2])
  end
  redis.call('ZADD', batches.at, string.format('%.0f', last and math.min(math.max(batches.now, last + 1), most) or batches.now), name)
  batches.came = (batches.came or 0) + 1
end

-- Writes the counts of a batch; `forgetBatches` has to run after it. A closed batch without messages finishes: the script adds its last
-- message, and notifies waiting calls. If a key of another type prevents the last message, that is kept, and the batch stays closed until
-- it is closed again.
local function putBatch(batches, name, batch)
  local isOver = batch.state == 'c' and batch.pending == 0 and not addLast(batches, name)
  if isOver then batch.state, batch.finished, batches.over = 'f', string.format('%.0f', batches.now), (batches.over or 0) + 1 end
  redis.call('HSET', batches.key, 'b' .. name, countsOf(batch))
  if not isOver then return end
  redis.call('HDEL', batches.key, 'l' .. name)
  noteFinished(batches, name)
  publishLines(batches.messages, ':batch-ends:', {name})
end

-- The batches of some messages, false for none; nothing if the key is of another type. After the first name that no script has written each
-- name is measured before it is read, because it can have any size.
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

-- Removes ended messages from the counts of their batches: `how` is "completed", "dead", "expired" or "removed". Runs after all other
-- writes about them, and before those of the change stream.
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
      -- a finished batch has counted them as removed already, see shared/empty-batches.lua
      if batch.state == 'f' then batch.removed = math.max(0, batch.removed - counts[name]) end
      batch.pending, batch[how] = math.max(0, batch.pending - counts[name]), batch[how] + counts[name]
      putBatch(batches, name, batch)
    end
  end
  forgetBatches(batches)
end
