-- A record is a byte with the length of its meta data, these ("<expires, epoch ms>,<delivery limit>,<bytes of headers>", or
-- nothing where all three are missing; with a group "," and its bytes follow), the group, the headers, the payload. An unreadable record
-- has no meta data, nor has one whose meta data is longer than three whole numbers: with a longer time in it, it would have no room in a
-- byte.
local MOST_META = 50
local function readMeta(record)
  local size = string.byte(record, 1) or 0
  if size == 0 or size > MOST_META then return nil, nil, 0, 2 + size end
  local expires, limit, headers, group = string.match(string.sub(record, 2, 1 + size), '^(%d*),(%d*),(%d*),?(%d*)$')
  local bytes = group ~= '' and tonumber(group) or 0
  if bytes < 1 or bytes > 255 then return tonumber(expires), tonumber(limit), tonumber(headers) or 0, 2 + size end
  local name = string.sub(record, 2 + size, 1 + size + bytes)
  return tonumber(expires), tonumber(limit), tonumber(headers) or 0, 2 + size + bytes, name ~= '' and name or nil -- another program's record can end before it
end

local function writeMeta(expires, limit, headers, group)
  if not expires and not limit and headers == 0 and not group then return '\0' end
  local meta = (expires and string.format('%.0f', expires) or '') .. ',' .. (limit and string.format('%.0f', limit) or '') .. ',' .. headers .. (group and ',' .. #group or '')
  return string.char(#meta) .. meta .. (group or '')
end

-- Moves the expiry of a message as much as its visibility, from `before` to `visible`. After the first delivery (`isDelivered`) it never
-- moves earlier, because the time to live already runs. A message that would have become visible only after its expiry, such as after a
-- long delay of a negative acknowledgement, keeps its expiry, or gets `least` if that is later. Returns when it expires, if ever.
local function shiftExpiry(messages, isDelivered, id, before, visible, least)
  local record = redis.call('HGET', messages, id)
  local expires, limit, headers, rest, group = readMeta(record or '\0')
  if expires then
    local later = isDelivered and math.max(visible - before, 0) or visible - before
    local shifted = before < expires and math.min(expires + later, 9007199254740991) or math.max(expires, least or 0)
    redis.call('HSET', messages, id, writeMeta(shifted, limit, headers, group) .. string.sub(record, rest))
    return string.format('%.0f', shifted)
  end
end
