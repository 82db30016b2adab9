-- The change stream: what a script has changed becomes one entry, in the same script. `stored` is the queue's setting `changes`,
-- "<g or r>,<most entries>,<oldest in ms or nothing>,<1 with records>,<epoch>"; without a valid one the queue keeps no changes.
local function openLog(stored)
  if type(stored) ~= 'string' or #stored > 100 then return nil end
  local keep, most, age, records, epoch = string.match(stored, '^([gr]),(%d+),(%d*),([01]),(~?[%w_-]*)$')
  if not keep then return nil end
  local limit = tonumber(most)
  if limit < 1 or limit > 100000000 or (age ~= '' and tonumber(age) > 9007199254740991) then return nil end
  -- Readers refuse entries of an epoch that no script makes: such an epoch, which a stranger has written, has ended.
  if epoch == '' or #epoch > 32 then epoch = '~' end
  -- With all fields that it will ever have: a table that grows is copied again and again.
  return {
    stored = stored, keep = keep, most = most, age = age, records = records == '1', epoch = epoch,
    head = false, extra = '', size = 0, count = 0, at = 0, last = 0, parts = false,
  }
end

-- The setting with another epoch.
local function changesWith(log, epoch)
  return string.match(log.stored, '^.*,') .. epoch
end

-- The same as `openLog`, of a configuration; a text that is longer than any setting is not read.
local function logOf(config)
  local size = redis.pcall('HSTRLEN', config, 'changes')
  if type(size) == 'number' and size > 0 and size <= 100 then return openLog(redis.call('HGET', config, 'changes')) end
end

-- Whether the groups have left so much unread that nothing may be added.
local function isBehind(log, stream)
  if not log or log.keep ~= 'g' then return false end
  local length = redis.pcall('XLEN', stream)
  return type(length) == 'number' and length >= tonumber(log.most)
end

-- What the changes of one part have in common: the kind, how many deliveries count now, when it is due as text, the priority.
local function changeHead(kind, attempts, due, priority)
  return kind .. ',' .. (attempts and string.format('%d', attempts) or '') .. ',' .. (due or '') .. ',' .. (priority or '')
end

-- Formatted as integers, which takes a fifth of what Lua needs to make a text of a number.
local function endPart(log)
  log.parts[log.at] = string.format('%s,%d,%d,%d\n', log.head, log.size, log.count, #log.extra)
end

-- A part is "<head>,<bytes of each id>,<how many ids>,<bytes of extra>\n", the extra (a record, an error, a name), the ids.
local function noteChange(log, head, id, extra)
  extra = extra or ''
  if head == log.head and #id == log.size and extra == log.extra then
    log.count, log.last = log.count + 1, log.last + 1
    log.parts[log.last] = id
    return
  end
  if log.parts then
    endPart(log)
    local at = log.last + 1
    log.at, log.last = at, at + 2
    log.parts[at], log.parts[at + 1], log.parts[at + 2] = '', extra, id
  else
    log.at, log.last, log.parts = 1, 3, {'', extra, id}
  end
  log.head, log.extra, log.size, log.count = head, extra, #id, 1
end

local function appendEntry(log, stream, entry, onlyIfThere)
  if log.keep == 'g' and onlyIfThere then return redis.pcall('XADD', stream, 'NOMKSTREAM', '*', 'changes', entry) end
  if log.keep == 'g' then return redis.pcall('XADD', stream, '*', 'changes', entry) end
  if onlyIfThere then return redis.pcall('XADD', stream, 'NOMKSTREAM', 'MAXLEN', '~', log.most, '*', 'changes', entry) end
  return redis.pcall('XADD', stream, 'MAXLEN', '~', log.most, '*', 'changes', entry)
end

-- Whether an id comes from a clock. After one that a stranger has written, all others follow, and after the last one possible there are
-- none. What a script writes has 13 digits of milliseconds (until the year 2286), and few after them.
local function isOfClock(id)
  local dash = string.find(id, '-', 1, true)
  return dash and dash <= 14 and #id - dash <= 10
end

local ENDED = string.byte('~')

-- It differs from all before it: by it the readers learn that changes may be missing.
local function epochAfter(epoch)
  local time = redis.call('TIME')
  return string.sub(redis.sha1hex(epoch .. time[1] .. '.' .. time[2]), 1, 16)
end

-- The last step of a script. Where the stream is not there any more, it begins anew with another epoch. What cannot be written (to a
-- key of another type) ends the epoch instead of the work; an epoch that has ended begins with "~". A stream with ids that come from no clock
-- is removed, and begins anew, too.
local function writeChanges(log, stream, config, client)
  if not log or not log.parts then return end
  endPart(log)
  local text, epoch, written = ' ' .. client .. '\n' .. table.concat(log.parts), log.epoch, false
  local hasEnded = string.byte(epoch) == ENDED
  if not hasEnded then written = appendEntry(log, stream, epoch .. text, true) end
  if not written then
    epoch = epochAfter(log.epoch)
    written = appendEntry(log, stream, epoch .. text, false)
  end
  local last = written
  if type(last) == 'table' then
    local about = redis.pcall('XINFO', 'STREAM', stream)
    for n = 1, about.err and 0 or #about, 2 do
      if about[n] == 'last-generated-id' then last = about[n + 1] end
    end
  end
  if type(last) == 'string' and not isOfClock(last) then
    epoch = epochAfter(log.epoch)
    redis.pcall('UNLINK', stream)
    written = appendEntry(log, stream, epoch .. text, false)
  end
  if type(written) == 'table' then
    epoch = hasEnded and log.epoch or '~' .. log.epoch
  elseif log.keep == 'r' and log.age ~= '' then
    local time = redis.call('TIME')
    local oldest = time[1] * 1000 + math.floor(time[2] / 1000) - tonumber(log.age)
    redis.pcall('XTRIM', stream, 'MINID', '~', string.format('%.0f', math.max(0, oldest)))
  end
  if epoch ~= log.epoch then redis.pcall('HSET', config, 'changes', changesWith(log, epoch)) end
end
