-- The change stream: each script writes its changes as one entry. `stored` is the queue's setting `changes`,
-- "<g or r>,<most entries>,<oldest in ms or nothing>,<1 with records>,<epoch>"; without a valid one the queue keeps no changes.
local function openLog(stored)
  if type(stored) ~= 'string' or #stored > 100 then return nil end
  local keep, most, age, records, epoch = string.match(stored, '^([gr]),(%d+),(%d*),([01]),(~?[%w_-]*)$')
  if not keep then return nil end
  local limit = tonumber(most)
  if limit < 1 or limit > 100000000 or (age ~= '' and tonumber(age) > 9007199254740991) then return nil end
  -- Readers refuse entries of an epoch that no script makes: another program wrote such an epoch, and it counts as ended.
  if epoch == '' or #epoch > 32 then epoch = '~' end
  -- with all fields that it will ever have, because Lua copies a growing table again and again
  return {
    stored = stored, keep = keep, most = most, age = age, records = records == '1', epoch = epoch,
    head = false, extra = '', only = '', size = 0, count = 0, at = 0, last = 0, parts = false,
  }
end

-- The setting with another epoch.
local function changesWith(log, epoch)
  return string.match(log.stored, '^.*,') .. epoch
end

-- As `openLog`, from the configuration; fails if that is of another type. Does not read a text that is longer than any setting.
local function logOf(config)
  local size = redis.call('HSTRLEN', config, 'changes')
  if size > 0 and size <= 100 then return openLog(redis.call('HGET', config, 'changes')) end
end

-- Whether the groups have left too many changes unread, so that no message may be added.
local function isBehind(log, stream)
  if not log or log.keep ~= 'g' then return false end
  local length = redis.pcall('XLEN', stream)
  return type(length) == 'number' and length >= tonumber(log.most)
end

-- The common fields of the changes of one part: the kind, the counted deliveries, the due time as text, the priority.
local function changeHead(kind, attempts, due, priority)
  return kind .. ',' .. (attempts and string.format('%d', attempts) or '') .. ',' .. (due or '') .. ',' .. (priority or '')
end

-- Ends a part. Formats integers, which takes a fifth of the time of Lua's conversion of numbers.
local function endPart(log)
  log.parts[log.at] = string.format('%s,%d,%d,%d\n', log.head, log.size, log.count, #log.extra)
end

-- A part is "<head>,<bytes of each id>,<how many ids>,<bytes of extra>\n", the extra (a record, an error, a name), the ids. Most scripts
-- make one change, for which no list of parts is made.
local function noteChange(log, head, id, extra)
  extra = extra or ''
  if not log.head then
    log.head, log.extra, log.size, log.count, log.only = head, extra, #id, 1, id
    return
  end
  if not log.parts then log.at, log.last, log.parts = 1, 3, {'', log.extra, log.only} end
  if head == log.head and #id == log.size and extra == log.extra then
    log.count, log.last = log.count + 1, log.last + 1
    log.parts[log.last] = id
    return
  end
  endPart(log)
  local at = log.last + 1
  log.at, log.last = at, at + 2
  log.parts[at], log.parts[at + 1], log.parts[at + 2] = '', extra, id
  log.head, log.extra, log.size, log.count = head, extra, #id, 1
end

local function appendEntry(log, stream, epoch, client, onlyIfThere)
  local entry
  if log.parts then entry = epoch .. ' ' .. client .. '\n' .. table.concat(log.parts)
  else
    local bytes = log.extra == '' and '0' or #log.extra
    entry = epoch .. ' ' .. client .. '\n' .. log.head .. ',' .. log.size .. ',1,' .. bytes .. '\n' .. log.extra .. log.only
  end
  if log.keep == 'g' and onlyIfThere then return redis.pcall('XADD', stream, 'NOMKSTREAM', '*', 'changes', entry) end
  if log.keep == 'g' then return redis.pcall('XADD', stream, '*', 'changes', entry) end
  if onlyIfThere then return redis.pcall('XADD', stream, 'NOMKSTREAM', 'MAXLEN', '~', log.most, '*', 'changes', entry) end
  return redis.pcall('XADD', stream, 'MAXLEN', '~', log.most, '*', 'changes', entry)
end

-- Whether an id comes from a clock. All later ids follow one that another program has written, and after the greatest possible id there are
-- none. The ids of scripts have 13 digits of milliseconds (until the year 2286), and few after them.
local function isOfClock(id)
  local dash = string.find(id, '-', 1, true)
  return dash and dash <= 14 and #id - dash <= 10
end

local ENDED = string.byte('~')

-- Makes an epoch that differs from all earlier ones, by which readers learn that changes may be missing.
local function epochAfter(epoch)
  local time = redis.call('TIME')
  return string.sub(redis.sha1hex(epoch .. time[1] .. '.' .. time[2]), 1, 16)
end

-- Writes the changes, as the last step of a script. A missing stream begins anew with another epoch. If the write fails (such as for a
-- key of another type), the epoch ends, but not the script; an ended epoch begins with "~". A stream with ids that do not come from a clock
-- is removed, and begins anew too.
local function writeChanges(log, stream, config, client)
  if not log or not log.head then return end
  if log.parts then endPart(log) end
  local epoch, written = log.epoch, false
  local hasEnded = string.byte(epoch) == ENDED
  if not hasEnded then written = appendEntry(log, stream, epoch, client, true) end
  if not written then
    epoch = epochAfter(log.epoch)
    written = appendEntry(log, stream, epoch, client, false)
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
    written = appendEntry(log, stream, epoch, client, false)
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
