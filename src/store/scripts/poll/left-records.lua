-- A step of reliable-poll.lua, which some polls take: it looks at some records, at random, whose message or place another program may have
-- deleted. Messages of batches that the queue does not have any more count as removed, so that their batches finish. Records of completed
-- messages and of finished batches get their places back, by their times, so that scripts remove them in their turn. The functions return
-- how many they found: with any there can be more. A script finds `PAGES` times `FEW` of a kind at most.
local PAGES, FEW = 2, 16

-- Calls `look`, which returns whether a record is such a one, for a page of fields; for another page while most are.
local function lookAtSome(key, look)
  local found = 0
  for n = 1, PAGES do
    for _, field in ipairs(namesOf(FEW, function(many) return redis.pcall('HRANDFIELD', key, -many) end, 1, true)) do
      if look(field) then found = found + 1 end
    end
    if found < n * FEW / 2 or isOver() then break end
  end
  return found
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
  local gone, isGone = {}, {}
  local found = lookAtSome(batches.key, function(field)
    local kind, name = string.sub(field, 1, 1), string.sub(field, 2)
    if kind == 'm' then
      if #name > 576 or isGone[name] or redis.call('HEXISTS', messages, name) == 1 or redis.call('HSTRLEN', batches.key, field) > LONGEST_BATCH then return false end
      gone[#gone + 1], isGone[name] = name, true
      return true
    end
    if kind ~= 'b' or #name > LONGEST_BATCH or isIn(batches.at, name) then return false end
    local batch = readBatch(batches, name)
    return batch and batch.state == 'f' and place(batches.at, name, batch.finished)
  end)
  leaveBatches(batches, gone, 'removed')
  return found
end

local function lookAtCompleted(completed, completedAt)
  local records, places = redis.pcall('HLEN', completed), redis.pcall('ZCARD', completedAt)
  if type(records) ~= 'number' or type(places) ~= 'number' or records <= places then return 0 end
  return lookAtSome(completed, function(id)
    if bytes > BYTES or isIn(completedAt, id) then return false end
    local record = redis.call('HGET', completed, id)
    bytes = bytes + #record
    return place(completedAt, id, string.match(string.sub(record, 1, 17), '^(%d+),'))
  end)
end
