-- List one page of the names of groups: first groups with waiting messages, by length and bytes; then others that have claims, or had some
-- lately; then other paused groups. The caller goes on until the cursor is empty.
--
-- KEYS[1] groupOrder  zset  group, due time and id of the messages with a group, in the order of their bytes
-- KEYS[2] groups      hash  group -> its claims, and when they were
-- KEYS[3] groupPauses  zset  the paused groups
--
-- ARGV[1] cursor  bytes    nothing for the first page
-- ARGV[2] count   integer  about how many
--
-- returns {the cursor of the next page, nothing after the last, names}
-- include shared/names.lua

local order, states, pauses = KEYS.groupOrder, KEYS.groups, KEYS.groupPauses
local count, LONGEST, SCANNED, MOST_BYTES = tonumber(ARGV.count), 255, 8, 1048576
local phase, from = string.match(ARGV.cursor, '^(.)(.*)$')
local reply = {''}

local function isWaiting(group)
  local prefix = string.char(#group) .. group
  return redis.call('ZLEXCOUNT', order, '[' .. prefix, '(' .. prefix .. ':') > 0
end

-- The start of a range after all members with a prefix; nothing if there is none.
local function behind(prefix)
  local kept = string.match(prefix, '^(.-)\255*$')
  if kept == '' then return nil end
  return '[' .. string.sub(kept, 1, -2) .. string.char(string.byte(kept, -1) + 1)
end

if phase == 's' then
  local scanned, bytes, isOver = 0, 0, false -- in small steps, because the size of other programs' fields is unknown before they are read
  while not isOver do
    local page = redis.call('HSCAN', states, from, 'COUNT', SCANNED)
    for at = 1, #page[2], 2 do
      local group = page[2][at]
      bytes = bytes + #group + #page[2][at + 1]
      if #group > 0 and #group <= LONGEST and not isWaiting(group) then reply[#reply + 1] = group end
    end
    from, scanned = page[1], scanned + SCANNED
    isOver = from == '0' or scanned >= count or bytes > MOST_BYTES
  end
  reply[1] = from == '0' and 'p-' or 's' .. from
elseif phase == 'p' then
  local page, isCut = namesOf(count, function(many, rank) return redis.call('ZRANGEBYLEX', pauses, from, '+', 'LIMIT', rank, many) end)
  for _, group in ipairs(page) do
    if #group > 0 and #group <= LONGEST and not isWaiting(group) and redis.call('HEXISTS', states, group) == 0 then reply[#reply + 1] = group end
  end
  if isCut or #page == count then reply[1] = 'p(' .. page[#page] end
else
  from = phase and from or '-'
  for _ = 1, count do
    local page, isCut = namesOf(1, function() return redis.call('ZRANGEBYLEX', order, from, '+', 'LIMIT', 0, 1) end, 1, true)
    local member = page[1]
    if not member then
      if not isCut then from = nil end
      break
    end
    local size = string.byte(member, 1) or 0
    local prefix, group = string.sub(member, 1, 1 + size), string.sub(member, 2, 1 + size)
    if size > 0 and #group == size then
      reply[#reply + 1] = group
      from = behind(prefix)
    else -- of another program; no name of a group is empty
      from = size == 0 and '[\1' or '(' .. member
    end
    if not from then break end
  end
  reply[1] = from and 'o' .. from or 's0'
end
return reply
