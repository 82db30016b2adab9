-- What the history of a message begins with where a consumer has said how far it is: "~<attempt> <epoch ms> <bytes>\n", a line feed and a
-- backslash of the bytes escaped. It stays when the history is cut.
local function progressIn(history)
  return string.match(history, '^~[^\n]*\n') or ''
end
