-- The change stream: what a script has changed becomes one entry, in the same script. `stored` is the queue's setting `changes`,
-- "<g or r>,<most entries>,<oldest in ms or nothing>,<1 with records>,<epoch>"; without a valid one the queue keeps no changes.
local function openLog(stored)
  if type(stored) ~= 'string' or #stored > 100 then return nil end
  local prefix, keep, most, age, records, epoch = string.match(stored, '^(([gr]),(%d+),(%d*),([01]),)(~?[%w_-]*)$')
  most, age = tonumber(most), tonumber(age)
  if not prefix or most < 1 or most > 100000000 or (age and age > 9007199254740991) then return nil end
  return {prefix = prefix, keep = keep, most = most, age = age, records = records == '1', epoch = epoch, parts = 0}
end

-- The same of a configuration; a text that is longer than any setting is not read.
local function logOf(config)
  local size = redis.pcall('HSTRLEN', config, 'changes')
  if type(size) == 'number' and size > 0 and size <= 100 then return openLog(redis.call('HGET', config, 'changes')) end
end

-- Whether the groups have left so much unread that nothing may be added.
local function isBehind(log, stream)
  if not log or log.keep ~= 'g' then return false end
  local length = redis.pcall('XLEN', stream)
  return type(length) == 'number' and length >= log.most
end

-- What the changes of one part have in common: the kind, how many deliveries count now, when it is due as text, the priority.
local function changeHead(kind, attempts, due, priority)
  return kind .. ',' .. (attempts and string.format('%.0f', attempts) or '') .. ',' .. (due or '') .. ',' .. (priority or '')
end

local function endPart(log)
  if log.at then log[log.at] = log.head .. ',' .. log.size .. ',' .. log.count .. ',' .. #log.extra .. '\n' end
end

-- A part is "<head>,<bytes of each id>,<how many ids>,<bytes of extra>\n", the extra (a record, an error, a name), the ids.
local function noteChange(log, head, id, extra)
  extra = extra or ''
  if #id ~= log.size or head ~= log.head or extra ~= log.extra then
    endPart(log)
    log.at, log.head, log.size, log.extra, log.count = log.parts + 1, head, #id, extra, 0
    log[log.at], log[log.at + 1] = '', extra
    log.parts = log.at + 1
  end
  log.count, log.parts = log.count + 1, log.parts + 1
  log[log.parts] = id
end

local function appendEntry(log, stream, entry, onlyIfThere)
  local args = {stream}
  if onlyIfThere then args[2] = 'NOMKSTREAM' end
  if log.keep == 'r' then
    args[#args + 1], args[#args + 2], args[#args + 3] = 'MAXLEN', '~', log.most
  end
  args[#args + 1], args[#args + 2], args[#args + 3] = '*', 'changes', entry
  return redis.pcall('XADD', unpack(args))
end

-- Whether an id comes from a clock. After one that a stranger has written, all others follow, and after the last one possible there are
-- none. What a script writes has 13 digits of milliseconds, and few after them.
local function isOfClock(id)
  local dash = string.find(id, '-', 1, true)
  return dash and dash <= 16 and #id - dash <= 10
end

-- It differs from all before it: by it the readers learn that changes may be missing.
local function epochAfter(epoch)
  local time = redis.call('TIME')
  return string.sub(redis.sha1hex(epoch .. time[1] .. '.' .. time[2]), 1, 16)
end

-- The last step of a script. Where the stream is not there any more, it begins anew with another epoch. What cannot be written (to a
-- key of another type) ends the epoch instead of the work; an epoch that has ended begins with "~". A stream with ids that come from no clock
-- is removed, and begins anew, too.
local function writeChanges(log, stream, config, client)
  if not log or not log.at then return end
  endPart(log)
  local text, epoch, written = ' ' .. client .. '\n' .. table.concat(log), log.epoch, false
  local hasEnded = string.sub(epoch, 1, 1) == '~'
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
  elseif log.keep == 'r' and log.age then
    local time = redis.call('TIME')
    local oldest = time[1] * 1000 + math.floor(time[2] / 1000) - log.age
    redis.pcall('XTRIM', stream, 'MINID', '~', string.format('%.0f', math.max(0, oldest)))
  end
  if epoch ~= log.epoch then redis.pcall('HSET', config, 'changes', log.prefix .. epoch) end
end
