-- A step of reliable-poll.lua for polls that found nothing: looks at some records, at random, whose message or place another program has deleted. Counts out
-- messages of batches that the queue does not have any more, so that their batches finish. Gives records of completed messages and of finished batches their
-- places back, by their times, so that they are removed in their turn. Returns whether it found any: then there can be more.
local function someOf(key)
  return namesOf(16, function(many) return redis.pcall('HRANDFIELD', key, -many) end, 1, true)
end

local function isIn(places, name)
  return redis.pcall('ZSCORE', places, name) ~= false -- also if the key is of another type
end

local function place(places, name, time)
  local at = math.min(setting(time, 0) or 0, now)
  return redis.pcall('ZADD', places, string.format('%.0f', at), name) == 1
end

-- Runs after what ended in this poll has left its batches.
local function lookAtBatches(batches)
  local isFound, gone = false, {}
  for _, field in ipairs(someOf(batches.key)) do
    local kind, name = string.sub(field, 1, 1), string.sub(field, 2)
    if kind == 'm' and #name <= 576 and redis.call('HEXISTS', messages, name) == 0 and redis.call('HSTRLEN', batches.key, field) <= LONGEST_BATCH then
      gone[#gone + 1], isFound = name, true
    elseif kind == 'b' and #name <= LONGEST_BATCH and not isIn(batches.at, name) then
      local batch = readBatch(batches, name)
      if batch and batch.state == 'f' and place(batches.at, name, batch.finished) then isFound = true end
    end
  end
  leaveBatches(batches, gone, 'removed')
  return isFound
end

local function lookAtCompleted(completed, completedAt)
  local records, places = redis.pcall('HLEN', completed), redis.pcall('ZCARD', completedAt)
  if type(records) ~= 'number' or type(places) ~= 'number' or records <= places then return false end
  local isFound = false
  for _, id in ipairs(someOf(completed)) do
    if bytes > BYTES then break end
    if not isIn(completedAt, id) then
      local record = redis.call('HGET', completed, id)
      bytes = bytes + #record
      if place(completedAt, id, string.match(string.sub(record, 1, 17), '^(%d+),')) then isFound = true end
    end
  end
  return isFound
end
