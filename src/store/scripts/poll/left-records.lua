-- A step of reliable-poll.lua, which some polls take: it looks at some records, at random, whose message or place another program may have
-- deleted. Messages of batches that the queue does not have any more count as removed, so that their batches finish. What a closed batch
-- counts as pending although no batch has a message counts as removed too. Records of completed messages and of finished batches get
-- their places back, by their times, so that scripts remove them in their turn. The functions return how many they found: with any there
-- can be more. A script finds `PAGES` times `FEW` of a kind at most.

-- Calls `look`, which returns whether a record is such a one, for a page of fields; for another page while most are.
local function lookAtSome(key, look)
  local PAGES, FEW = 2, 16 -- in here: Lua has room for 200 local names in a script
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
  local gone, isGone, empty, areEmpty = {}, {}, {}, nil
  local found = lookAtSome(batches.key, function(field)
    local kind, name = string.sub(field, 1, 1), string.sub(field, 2)
    if kind == 'm' then
      if #name > 576 or isGone[name] or redis.call('HEXISTS', messages, name) == 1 or redis.call('HSTRLEN', batches.key, field) > LONGEST_BATCH then return false end
      gone[#gone + 1], isGone[name] = name, true
      return true
    end
    local batch = kind == 'b' and #name <= LONGEST_BATCH and readBatch(batches, name)
    if not batch then return false end
    if batch.state == 'f' then return not isIn(batches.at, name) and place(batches.at, name, batch.finished) end
    if batch.state == 'o' or batch.pending == 0 then return false end
    if areEmpty == nil then areEmpty = areBatchesEmpty(batches) end
    if not areEmpty then return false end
    empty[#empty + 1] = name
    return true
  end)
  leaveBatches(batches, gone, 'removed')
  for _, name in ipairs(empty) do
    local batch = readBatch(batches, name)
    if batch and batch.state == 'c' and batch.pending > 0 then
      removePending(batch)
      putBatch(batches, name, batch)
    end
  end
  forgetBatches(batches)
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
